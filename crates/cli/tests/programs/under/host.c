#include <dlfcn.h>
int main(void) {
    void *library = dlopen("./plugin.so", RTLD_NOW);
    int (*plugin)(void) = library ? (int (*)(void))dlsym(library, "plugin") : 0;
    return plugin ? plugin() : 1;
}
