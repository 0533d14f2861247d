/* A module that says nothing of the GIL, as most did before 3.13. */
#include <Python.h>

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "undeclared"};

PyMODINIT_FUNC PyInit_undeclared(void) { return PyModuleDef_Init(&definition); }
