// Loads the library named by its argument.
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    ((void (*)(void))dlsym(library, "race"))();
    return 0;
}
