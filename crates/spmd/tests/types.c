// Random derived types: the bytes that `sv_flatten` names, in its order, are what MPI_Pack packs.
#include "../c/common.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 3000, MEMORY = 1 << 22, MIDDLE = MEMORY / 2 };

static unsigned long state = 88172645463325252UL;

static int below(int n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state >> 33) % n;
}

static MPI_Datatype random_type(int depth);

// Blocks of an indexed type, one behind the other with gaps, in either direction.
static int blocks(int *lens, int *at) {
    int n = 1 + below(3), next = 0, backwards = below(2);
    for (int i = 0; i < n; i++) {
        lens[i] = below(3);
        next += below(3);
        at[i] = backwards ? -next - lens[i] : next;
        next += lens[i];
    }
    return n;
}

static MPI_Datatype of_blocks(MPI_Datatype inner) {
    int lens[3], at[3];
    MPI_Aint bytes[3], bound, extent;
    MPI_Datatype made, inners[3] = {inner, inner, inner};
    int n = blocks(lens, at);
    MPI_Type_get_extent(inner, &bound, &extent);
    for (int i = 0; i < n; i++)
        bytes[i] = at[i] * extent;
    switch (below(5)) {
    case 0: MPI_Type_indexed(n, lens, at, inner, &made); break;
    case 1: MPI_Type_create_hindexed(n, lens, bytes, inner, &made); break;
    case 2: MPI_Type_create_indexed_block(n, 1, at, inner, &made); break;
    case 3: MPI_Type_create_hindexed_block(n, 1, bytes, inner, &made); break;
    default: MPI_Type_create_struct(n, lens, bytes, inners, &made); break;
    }
    return made;
}

static MPI_Datatype subarray(MPI_Datatype inner) {
    int dims = 1 + below(3), sizes[3], parts[3], starts[3];
    MPI_Datatype made;
    for (int d = 0; d < dims; d++) {
        sizes[d] = 1 + below(4);
        parts[d] = 1 + below(sizes[d]);
        starts[d] = below(sizes[d] - parts[d] + 1);
    }
    int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Type_create_subarray(dims, sizes, parts, starts, order, inner, &made);
    return made;
}

static MPI_Datatype random_type(int depth) {
    static const int named = 7;
    MPI_Datatype basic[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_DOUBLE, MPI_SHORT_INT, MPI_DOUBLE_INT};
    MPI_Datatype made, inner;
    if (depth == 0)
        return basic[below(named)];
    inner = random_type(depth - 1);
    MPI_Aint bound, extent;
    MPI_Type_get_extent(inner, &bound, &extent);
    switch (below(7)) {
    case 0: MPI_Type_contiguous(1 + below(3), inner, &made); break;
    case 1: MPI_Type_vector(1 + below(3), 1 + below(2), 2 + below(2), inner, &made); break;
    case 2: MPI_Type_create_hvector(1 + below(3), 1 + below(2), (2 + below(2)) * extent, inner, &made); break;
    case 3: MPI_Type_dup(inner, &made); break;
    case 4: MPI_Type_create_resized(inner, bound, extent + 8 * below(3), &made); break;
    case 5: made = subarray(inner); break;
    default: made = of_blocks(inner); break;
    }
    return made;
}

int main(int argc, char **argv) {
    static unsigned char memory[MEMORY], packed[MEMORY], ours[MEMORY];
    long pieces_seen = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < MEMORY; i++)
        memory[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
    for (int i = 0; i < TYPES; i++) {
        MPI_Datatype type = random_type(i % 4);
        int count = below(4), size = 0, at = 0;
        struct pieces pieces = {0};
        MPI_Aint least, most;
        MPI_Type_commit(&type);
        MPI_Type_get_true_extent(type, &least, &most);
        if (most > MIDDLE / 8 || least < -MIDDLE / 8)
            continue;
        MPI_Pack(memory + MIDDLE, count, type, packed, MEMORY, &size, MPI_COMM_SELF);
        sv_flatten(&pieces, MIDDLE, count, type);
        for (size_t p = 0; p < pieces.count; p++) {
            memcpy(ours + at, memory + sv_list(&pieces)[p].start, sv_list(&pieces)[p].len);
            at += (int)sv_list(&pieces)[p].len;
        }
        pieces_seen += (long)pieces.count;
        if (at != size || memcmp(ours, packed, (size_t)size)) {
            printf("type %d, %d times: %d bytes, and MPI packs %d\n", i, count, at, size);
            return 1;
        }
        free(pieces.list);
    }
    printf("%ld pieces\n", pieces_seen);
    MPI_Finalize();
    return pieces_seen < TYPES;
}
