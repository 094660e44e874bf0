
/*
 * The commands of llmgw-sim, one file each.  Each takes its own argv, whose
 * argv[0] is the command's name, and returns the exit status: 0, 1 (a check or
 * a comparison failed) or 2 (bad input, with one line on stderr).
 */

#ifndef SIM_COMMANDS_H
#define SIM_COMMANDS_H


int run_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int calibrate_main(int argc, char **argv);
int convert_main(int argc, char **argv);
int compare_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int observe_main(int argc, char **argv);
int search_main(int argc, char **argv);

#endif /* SIM_COMMANDS_H */
