#include "legitimate.h"

/* [new] */
static PyObject *new_and_copy(const char *text, Py_ssize_t length) {
    PyObject *str = PyUnicode_New(length, 127);
    if (str && length) {
        memcpy(PyUnicode_DATA(str), text, length);
    }
    return str;
}
/* [/new] */

#if PY_VERSION_HEX >= 0x030E0000
static PyObject *writer(const char *text, Py_ssize_t length) {
    PyUnicodeWriter *writer = PyUnicodeWriter_Create(length);
    if (!writer) {
        return NULL;
    }
    if (PyUnicodeWriter_WriteUTF8(writer, text, length) < 0) {
        PyUnicodeWriter_Discard(writer);
        return NULL;
    }
    return PyUnicodeWriter_Finish(writer);
}
#endif

static const struct { const char *name; legitimate *create; } known[] = {
    {"new", new_and_copy},
    {"from string", PyUnicode_FromStringAndSize},
#if PY_VERSION_HEX >= 0x030E0000
    {"writer", writer},
#endif
};

legitimate *legitimate_of(const char *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(known); i++) {
        if (!strcmp(name, known[i].name)) {
            return known[i].create;
        }
    }
    return NULL;
}

PyObject *legitimate_string(const Buffer *buffer, const Line *line, legitimate *create) {
    const char *text = buffer->data + line->offset;
    return line->ascii ? create(text, line->length) : PyUnicode_DecodeUTF8(text, line->length, NULL);
}

PyObject *legitimate_strings(const Buffer *buffer, const Line *lines, Py_ssize_t count, legitimate *create) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *str = legitimate_string(buffer, &lines[i], create);
        if (!str) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, str);
        }
    }
    return tuple;
}
