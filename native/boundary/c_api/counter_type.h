/* Registers the type Counter; C linkage, as it is written in C++. */
#ifndef COUNTER_TYPE_H
#define COUNTER_TYPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef __cplusplus
extern "C"
#endif
int counter_type_add(PyObject *module);

#endif
