void library_work(void);

int main(void) {
    library_work();
    return 0;
}
