/* A std::mutex, for C. */
#ifndef STANDARD_H
#define STANDARD_H

#ifdef __cplusplus
extern "C" {
#endif

void *standard_new(void);
void standard_delete(void *mutex);
void standard_lock(void *mutex);
void standard_unlock(void *mutex);

#ifdef __cplusplus
}
#endif

#endif
