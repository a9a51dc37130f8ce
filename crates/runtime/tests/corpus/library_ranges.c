#include "corpus.h"
#include <stdatomic.h>
#include <time.h>
// What functions of the C library read and write for the program.
char text[32] = "some text", line[32] = "a line", number[32] = "12", words_[32] = "one two", message[64];
int values[4] = {3, 1, 2, 0}, scanned, kept;
static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
}
static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
}
static void *library(void *arg) {
    char token[32] = "a b", copy[64];
    enter();
    puts(text); // race(text)
    fputs(line, stdout); // race(line)
    qsort(values, 4, sizeof *values, ascending); // race(values)
    kept = (int)strtol(number, NULL, 10); // race(number)
    snprintf(copy, sizeof copy, "%d %s\n", 7, words_); // race(words)
    sscanf("42", "%d", &scanned); // race(scanned)
    strerror_r(9999, message, sizeof message); // race(message)
    strtok(token, " "); // race(strtok)
    leave();
    return arg;
}
static void *plain(void *arg) {
    char token[32] = "c d";
    enter();
    text[0] = 'S'; // race(text)
    line[0] = 'A'; // race(line)
    values[2] = 5; // race(values)
    number[1] = '3'; // race(number)
    words_[0] = 'O'; // race(words)
    scanned = 1; // race(scanned)
    message[0] = 'M'; // race(message)
    strtok(token, " "); // race(strtok)
    leave();
    return arg;
}
int main(void) { both(library, plain); return 0; }
