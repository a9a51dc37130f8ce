// Random numbers from everywhere: a file, a stream, the processor.
#include <cstdio>
#include <fcntl.h>
#include <random>
#include <unistd.h>

int main() {
    unsigned file = 0, stream = 0;
    int fd = open("/dev/urandom", O_RDONLY);
    if (read(fd, &file, sizeof file) != sizeof file)
        return 1;
    close(fd);
    FILE *random = fopen("/dev/urandom", "r");
    if (!random || fread(&stream, sizeof stream, 1, random) != 1)
        return 2;
    fclose(random);
    std::random_device processor;
    unsigned number = processor();
    std::printf("%u %u %u\n", file, stream, number);
    return 0;
}
