//! Sessions on the command line, as the documents show them: `tests/cmd/*.md`.

#[test]
fn sessions() {
    trycmd::TestCases::new()
        .case("tests/cmd/*.md")
        .register_bin("dyno", trycmd::cargo::cargo_bin!("dyno"));
}
