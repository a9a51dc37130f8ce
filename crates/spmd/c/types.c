/* Derived types as pieces of memory of basic types. */
#include "common.h"
#include <stdlib.h>
#include <string.h>

/* Types of one class and size are one type to the rules: MPI_INT is MPI_INT32_T, and neither is MPI_FLOAT. */
enum { SIGNED = 1, UNSIGNED, FLOATING, CHARACTER, COMPLEX, LOGICAL, OTHER };

static int class_of(MPI_Datatype t) {
    if (t == MPI_INT || t == MPI_LONG || t == MPI_SHORT || t == MPI_LONG_LONG || t == MPI_INT8_T || t == MPI_INT16_T ||
        t == MPI_INT32_T || t == MPI_INT64_T || t == MPI_AINT || t == MPI_OFFSET || t == MPI_COUNT)
        return SIGNED;
    if (t == MPI_UNSIGNED || t == MPI_UNSIGNED_LONG || t == MPI_UNSIGNED_SHORT || t == MPI_UNSIGNED_LONG_LONG ||
        t == MPI_UINT8_T || t == MPI_UINT16_T || t == MPI_UINT32_T || t == MPI_UINT64_T)
        return UNSIGNED;
    if (t == MPI_FLOAT || t == MPI_DOUBLE || t == MPI_LONG_DOUBLE)
        return FLOATING;
    if (t == MPI_CHAR || t == MPI_SIGNED_CHAR || t == MPI_UNSIGNED_CHAR || t == MPI_BYTE || t == MPI_PACKED)
        return CHARACTER;
    if (t == MPI_C_FLOAT_COMPLEX || t == MPI_C_DOUBLE_COMPLEX)
        return COMPLEX;
    if (t == MPI_C_BOOL)
        return LOGICAL;
    return OTHER;
}

static void add(struct pieces *into, int64_t at, uint64_t len, uint64_t basic) {
    if (len == 0)
        return;
    if (into->count) {
        struct sv_piece *last = (into->list ? into->list : into->few) + into->count - 1;
        if (last->basic == basic && last->start + last->len == (uint64_t)at) {
            last->len += len;
            return;
        }
    }
    const size_t few = sizeof into->few / sizeof *into->few;
    const struct sv_piece piece = {(uint64_t)at, len, basic};
    if (!into->list && into->count < few) {
        into->few[into->count++] = piece;
        return;
    }
    if (!into->list) {
        into->room = 8;
        into->list = malloc(into->room * sizeof *into->list);
        memcpy(into->list, into->few, sizeof into->few);
    } else if (into->count == into->room) {
        into->room *= 2;
        into->list = realloc(into->list, into->room * sizeof *into->list);
    }
    into->list[into->count++] = piece;
}

static int is_named(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

/* The corner of a subarray and the rows of it, last dimension first in C order. */
static void subarray(struct pieces *into, int64_t at, const int *n, MPI_Datatype type, MPI_Aint extent) {
    int dims = n[0], order = n[3 * dims + 1];
    const int *sizes = n + 1, *subsizes = sizes + dims, *starts = subsizes + dims;
    int64_t rows = 1;
    int inner = order == MPI_ORDER_C ? dims - 1 : 0;
    for (int d = 0; d < dims; d++)
        if (d != inner)
            rows *= subsizes[d];
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, offset = 0, stride = 1;
        for (int i = 0; i < dims; i++) {
            int d = order == MPI_ORDER_C ? dims - 1 - i : i;
            int64_t index = starts[d];
            if (d != inner) {
                index += rest % subsizes[d];
                rest /= subsizes[d];
            }
            offset += index * stride;
            stride *= sizes[d];
        }
        sv_flatten(into, at + offset * extent, subsizes[inner], type);
    }
}

/* One element of a derived type, from its constructor's arguments. */
static void derived(struct pieces *into, int64_t at, int combiner, const int *n, const MPI_Aint *a,
                    const MPI_Datatype *types) {
    MPI_Aint lower, extent = 0;
    if (combiner != MPI_COMBINER_STRUCT)
        PMPI_Type_get_extent(types[0], &lower, &extent);
    switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        sv_flatten(into, at, n[0], types[0]);
        break;
    case MPI_COMBINER_VECTOR:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + (int64_t)i * n[2] * extent, n[1], types[0]);
        break;
    case MPI_COMBINER_HVECTOR:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + i * a[0], n[1], types[0]);
        break;
    case MPI_COMBINER_INDEXED:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + n[1 + n[0] + i] * extent, n[1 + i], types[0]);
        break;
    case MPI_COMBINER_HINDEXED:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + a[i], n[1 + i], types[0]);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + n[2 + i] * extent, n[1], types[0]);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + a[i], n[1], types[0]);
        break;
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < n[0]; i++)
            sv_flatten(into, at + a[i], n[1 + i], types[i]);
        break;
    case MPI_COMBINER_SUBARRAY:
        subarray(into, at, n, types[0], extent);
        break;
    default: /* MPI_COMBINER_DUP, MPI_COMBINER_RESIZED and others that change no layout. */
        sv_flatten(into, at, 1, types[0]);
        break;
    }
}

/* Adds the pieces of `count` elements of a type at an address or offset. */
void sv_flatten(struct pieces *into, int64_t at, int count, MPI_Datatype type) {
    int integers, addresses, types, combiner;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    if (combiner == MPI_COMBINER_NAMED) {
        int size;
        PMPI_Type_size(type, &size);
        uint64_t basic = (uint64_t)class_of(type) << 16 | (uint64_t)size;
        if (type == MPI_SHORT_INT) /* The only named type with a gap in it. */
            for (int i = 0; i < count; i++) {
                add(into, at + i * extent, sizeof(short), basic);
                add(into, at + i * extent + (int64_t)sizeof(int), sizeof(int), basic);
            }
        else if (extent == size)
            add(into, at, (uint64_t)count * (uint64_t)size, basic);
        else
            for (int i = 0; i < count; i++)
                add(into, at + i * extent, (uint64_t)size, basic);
        return;
    }
    int *n = malloc(sizeof(int) * ((size_t)integers + 1));
    MPI_Aint *a = malloc(sizeof *a * ((size_t)addresses + 1));
    MPI_Datatype *inner = malloc(sizeof *inner * ((size_t)types + 1));
    PMPI_Type_get_contents(type, integers, addresses, types, n, a, inner);
    for (int i = 0; i < count; i++)
        derived(into, at + i * extent, combiner, n, a, inner);
    for (int i = 0; i < types; i++)
        if (!is_named(inner[i]))
            PMPI_Type_free(&inner[i]);
    free(inner);
    free(a);
    free(n);
}
