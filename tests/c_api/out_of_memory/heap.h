/* A heap that can fail: malloc and its kin are replaced in this program alone. Threads: any may allocate; one chooses what fails. */
#ifndef OUT_OF_MEMORY_HEAP_H
#define OUT_OF_MEMORY_HEAP_H

/* From now on call n, counted from here, answers NULL, and with `lasting` 1 all later ones, too; n 0: none. */
void heap_fail(long n, int lasting);
/* Nothing fails any more. Answers how many calls there were since heap_fail. */
long heap_recover(void);
long heap_live(void);      /* pieces that were allocated and not freed */
void heap_say_where(void); /* on standard error, who made the call that failed */

#endif
