//! dump
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    for script in bowline::Script::all() {
        std::fs::write(format!("{dir}/{}.lua", script.name()), script.source()).unwrap();
    }
}
