/* A critical section as the interpreter's own code has it: inlined, from an internal header.
 *
 * An extension must not do this; here it shows what the exported function costs. One thing stays different:
 * the core reads the thread state from a thread-local variable, a module has to call for it.
 */
#define Py_BUILD_CORE_MODULE 1
#include "cell.h"

#include "internal/pycore_critical_section.h"

void inlined_critical_section(Cell *cell, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Py_BEGIN_CRITICAL_SECTION(cell);
        cell->value++;
        Py_END_CRITICAL_SECTION();
    }
}
