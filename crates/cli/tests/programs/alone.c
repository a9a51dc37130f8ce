// One thread: there is nothing to schedule.
static int shared;

int main(void) {
    shared++;
    return 0;
}
