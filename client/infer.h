
/*
 * llmgw-client infer: one prompt; prints its tokens as they come.
 */

#ifndef INFER_H
#define INFER_H


/* argv[0] is the word "infer".  Returns the process's exit code. */
int infer_main(int argc, char **argv);

#endif /* INFER_H */
