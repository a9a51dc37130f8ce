// Two threads of a team count, in a critical section or not. Nothing of the library is used but what gcc's code calls.
int count;
int main(void) {
#pragma omp parallel num_threads(2)
    {
#ifdef FIXED
#pragma omp critical
#endif
        count++;
    }
    return 0;
}
