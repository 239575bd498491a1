//! Finds libthalweg.so: in the folder THALWEG_LIB_DIR, or by pkg-config.
fn main() {
    println!("cargo:rerun-if-env-changed=THALWEG_LIB_DIR");
    if let Ok(folder) = std::env::var("THALWEG_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
        return;
    }
    let found = std::process::Command::new("pkg-config").args(["--variable=libdir", "thalweg"]).output();
    if let Ok(output) = found {
        let folder = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && !folder.trim().is_empty() {
            println!("cargo:rustc-link-search=native={}", folder.trim());
        }
    }
}
