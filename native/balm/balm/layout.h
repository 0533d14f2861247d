/* What this module assumes about str, in one place: everything here is private to CPython.
 *
 * Include/cpython/unicodeobject.h, Include/object.h and, for free-threaded builds, Include/refcount.h.
 */
#ifndef BALM_LAYOUT_H
#define BALM_LAYOUT_H

#include <Python.h>
#include <stddef.h>

/* [refuse] */
#if PY_VERSION_HEX < 0x030D0000 || PY_VERSION_HEX >= 0x03100000
#error "balm knows the layout of str in CPython 3.13, 3.14 and 3.15 only"
#endif
#if defined(Py_TRACE_REFS) || defined(Py_LIMITED_API)
#error "balm does not know the objects of this kind of build"
#endif

#ifdef Py_GIL_DISABLED
#define HEAD_BYTES 32
#else
#define HEAD_BYTES 16
#endif
_Static_assert(sizeof(PyObject) == HEAD_BYTES, "PyObject");
_Static_assert(offsetof(PyObject, ob_type) == HEAD_BYTES - sizeof(void *), "PyObject.ob_type");
_Static_assert(offsetof(PyASCIIObject, length) == HEAD_BYTES, "PyASCIIObject.length");
_Static_assert(offsetof(PyASCIIObject, hash) == HEAD_BYTES + 8, "PyASCIIObject.hash");
_Static_assert(sizeof(PyASCIIObject) == HEAD_BYTES + 24, "PyASCIIObject");
_Static_assert(offsetof(PyASCIIObject, state) == HEAD_BYTES + 16, "PyASCIIObject.state");
_Static_assert(offsetof(PyCompactUnicodeObject, utf8_length) == HEAD_BYTES + 24, "PyCompactUnicodeObject.utf8_length");
_Static_assert(offsetof(PyCompactUnicodeObject, utf8) == HEAD_BYTES + 32, "PyCompactUnicodeObject.utf8");
_Static_assert(offsetof(PyUnicodeObject, data) == HEAD_BYTES + 40, "PyUnicodeObject.data");
_Static_assert(sizeof(PyUnicodeObject) == HEAD_BYTES + 48, "PyUnicodeObject");
/* [/refuse] */

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(where, bytes) ((void)(where), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(where, bytes) ((void)(where), (void)(bytes))
#endif

/* Who makes an object: a free-threaded build writes it into each of them. */
static inline uintptr_t this_thread(void) {
#ifdef Py_GIL_DISABLED
    return _Py_ThreadId();
#else
    return 0;
#endif
}

/* [head] */
/* A new object with one reference, owned by the thread that makes it. Every field is set: the memory may be new,
 * or may have been another object. Atomic, as a reader in another thread may still look at the old one. */
static inline void set_head(PyObject *op, PyTypeObject *type, uintptr_t thread) {
#ifdef Py_GIL_DISABLED
    __atomic_store_n(&op->ob_tid, thread, __ATOMIC_RELAXED);
#if PY_VERSION_HEX >= 0x030E0000
    op->ob_flags = 0;
#else
    op->_padding = 0;
#endif
    op->ob_mutex = (PyMutex){0};
    op->ob_gc_bits = 0;
    __atomic_store_n(&op->ob_ref_local, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&op->ob_ref_shared, 0, __ATOMIC_RELAXED);
#elif PY_VERSION_HEX >= 0x030E0000
    op->ob_refcnt_full = 1;
#else
    op->ob_refcnt = 1;
#endif
    op->ob_type = type;
}

/* An ASCII string that is not interned and whose hash is not known. */
static inline void set_ascii(PyASCIIObject *str, Py_ssize_t length, int compact) {
    str->length = length;
    str->hash = -1;
    memset(&str->state, 0, sizeof(str->state));
    str->state.kind = PyUnicode_1BYTE_KIND;
    str->state.ascii = 1;
    str->state.compact = compact;
}

/* Two fields in one store. */
typedef intptr_t Pair __attribute__((vector_size(2 * sizeof(intptr_t)), aligned(sizeof(intptr_t)), may_alias));

/* A string whose characters lie elsewhere: all of it, in as few stores as may be. CPython gives ASCII ones no UTF-8 cache of their
 * own: it is the text. */
static inline void set_view(PyUnicodeObject *str, PyTypeObject *type, uintptr_t thread, const char *text, Py_ssize_t length) {
    PyASCIIObject like;
    _Static_assert(sizeof(like.state) <= sizeof(intptr_t), "PyASCIIObject.state");
    set_ascii(&like, length, 0);
    intptr_t state = 0, where = (intptr_t)text;
    memcpy(&state, &like.state, sizeof(like.state));
#ifdef Py_GIL_DISABLED
    set_head((PyObject *)str, type, thread);
#else
    *(Pair *)str = (Pair){1, (intptr_t)type};
#endif
    Pair *fields = (Pair *)&str->_base._base.length;
    fields[0] = (Pair){length, -1};    /* length, hash */
    fields[1] = (Pair){state, length}; /* state, utf8_length */
    fields[2] = (Pair){where, where};  /* utf8, data */
}
/* The same head for another text: whoever looked at it found that nobody has it, so that its type, its state and its one reference stay. */
static inline void set_text(PyUnicodeObject *str, const char *text, Py_ssize_t length) {
    intptr_t where = (intptr_t)text;
    *(Pair *)&str->_base._base.length = (Pair){length, -1}; /* length, hash */
    str->_base.utf8_length = length;
    *(Pair *)&str->_base.utf8 = (Pair){where, where}; /* utf8, data */
}
/* [/head] */

/* Is the reference that the caller holds the last one, and may this thread end the object without asking? */
static inline int only_reference(PyObject *op, uintptr_t thread) {
#ifdef Py_GIL_DISABLED
    return __atomic_load_n(&op->ob_tid, __ATOMIC_RELAXED) == thread
           && __atomic_load_n(&op->ob_ref_local, __ATOMIC_RELAXED) == 1
           && __atomic_load_n(&op->ob_ref_shared, __ATOMIC_ACQUIRE) == 0;
#else
    return Py_REFCNT(op) == 1;
#endif
}

/* Of an object that somebody has: 1 if one reference is left, of a thread that owns it; else another bit is set, too. */
static inline uintptr_t references(PyObject *op) {
#ifdef Py_GIL_DISABLED
    return __atomic_load_n(&op->ob_ref_local, __ATOMIC_RELAXED)
           | (uintptr_t)__atomic_load_n(&op->ob_ref_shared, __ATOMIC_ACQUIRE) << 1;
#else
    return Py_REFCNT(op);
#endif
}

/* [sweep] */
/* Take the caller's reference to each of `count` objects away, which lie `bytes` apart. Returns how many died of it without being
 * asked: for those nobody was called, and the caller has to see to it. All others lost a reference as any object does. */
static inline size_t end_each(PyObject *first, size_t count, size_t bytes, uintptr_t thread) {
    size_t ended = 0;
    for (char *at = (char *)first, *to = at + count * bytes; at < to; at += bytes) {
        PyObject *op = (PyObject *)at;
        if (!only_reference(op, thread)) {
            Py_DECREF(op);
            continue;
        }
#ifdef Py_GIL_DISABLED
        /* Whoever still looks at it in another thread must find it dead. */
        __atomic_store_n(&op->ob_ref_local, 0, __ATOMIC_RELAXED);
#endif
        ASAN_POISON_MEMORY_REGION(op, bytes);
        ended++;
    }
    return ended;
}
/* [/sweep] */

/* A count that the GIL protects where there is one. Only attached threads may change it. */
static inline size_t count_add(size_t *count, size_t n) {
#ifdef Py_GIL_DISABLED
    return __atomic_add_fetch(count, n, __ATOMIC_ACQ_REL);
#else
    return *count += n;
#endif
}

/* Does CPython itself lay out str, its subclasses and tuple as we do? -1 and ImportError if not. */
int check_layout(void);

#endif
