
/*
 * llmgw-client openai: one prompt over OpenAI's API; prints the answer as it
 * comes.
 */

#ifndef OPENAI_H
#define OPENAI_H


/* argv[0] is the word "openai".  Returns the process's exit code. */
int openai_main(int argc, char **argv);

#endif /* OPENAI_H */
