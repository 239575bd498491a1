/* A heap that can fail: replaces malloc and related functions in this program. Threads: any may
 * allocate; one sets the failures. */
#ifndef OUT_OF_MEMORY_HEAP_H
#define OUT_OF_MEMORY_HEAP_H

/* Makes call n, counted from now, return NULL; with `lasting` 1 also all later calls. n 0: no
 * failure. */
void heap_fail(long n, int lasting);
/* Ends the failures. Returns the number of calls since heap_fail. */
long heap_recover(void);
long heap_live(void);      /* number of live allocations */
void heap_say_where(void); /* prints the call stack of the failed call on standard error */

#endif
