/* What the author's caveats speak of: layouts that differ, and a type whose objects grow. */
#ifndef BALM_CAVEATS_H
#define BALM_CAVEATS_H

#include "layout.h"

/* Add its functions to the module. -1 with an exception set if that fails. */
int caveats_exec(PyObject *module);

#endif
