/* Compresses a file by two threads with the library of zstd, as its program does: zstdmt LEVEL FILE. */
#define ZSTD_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>

#include "zstd.h"
#include "zstdmt_compress.h"

int main(int count, char **words) {
    if (count != 3)
        return 2;
    FILE *file = fopen(words[2], "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return 2;
    size_t size = (size_t)ftell(file), room = ZSTD_compressBound(size) + 65536;
    char *from = malloc(size), *to = malloc(room);
    rewind(file);
    if (from == NULL || to == NULL || fread(from, 1, size, file) != size)
        return 2;
    ZSTDMT_CCtx *context = ZSTDMT_createCCtx(2);
    ZSTDMT_setMTCtxParameter(context, ZSTDMT_p_jobSize, ZSTDMT_JOBSIZE_MIN);
    if (ZSTD_isError(ZSTDMT_initCStream(context, atoi(words[1]))))
        return 2;
    ZSTD_inBuffer in = {from, size, 0};
    ZSTD_outBuffer out = {to, room, 0};
    while (in.pos < in.size)
        if (ZSTD_isError(ZSTDMT_compressStream(context, &out, &in)))
            return 1;
    for (size_t left = 1; left != 0;) {
        left = ZSTDMT_endStream(context, &out);
        if (ZSTD_isError(left))
            return 1;
    }
    fwrite(to, 1, out.pos, stdout);
    ZSTDMT_freeCCtx(context);
    free(from);
    free(to);
    return fclose(file);
}
