fn main() {
    let args: Vec<String> = std::env::args().collect();
    let library = selvedge_instrument::Library::of_compiler(&["clang-19".into()]).unwrap();
    selvedge_instrument::races(
        &library,
        args[1].as_ref(),
        selvedge_instrument::accesses::Rules::ALL,
    )
    .unwrap();
}
