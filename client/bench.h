
/*
 * llmgw-client bench: many streams at once, every token checked.
 */

#ifndef BENCH_H
#define BENCH_H


/* argv[0] is the word "bench".  Returns the process's exit code. */
int bench_main(int argc, char **argv);

#endif /* BENCH_H */
