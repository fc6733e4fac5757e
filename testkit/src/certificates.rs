//! Certificates for servers and clients that speak TLS.

use std::path::Path;
use std::process::Command;

/// Writes into the folder, as `<name>.crt` and `<name>.key`: an authority `ca`, a server's certificate by it for
/// `localhost` and 127.0.0.1, a `client`'s, and an authority `other` that has signed nothing.
pub fn write(folder: &Path) {
    let openssl = |args: &str| {
        let output = Command::new("openssl").args(args.split(' ')).current_dir(folder).output().expect("openssl");
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(folder.join("ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.crt -days 2 -subj /CN={name}"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost");
    openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile ext");
    openssl("req -newkey rsa:2048 -nodes -keyout client.key -out client.csr -subj /CN=client");
    openssl("x509 -req -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out client.crt -days 2 -extfile ext");
}

/// The arguments of a server with the certificate of this name, on a port for TLS. `asks`: whether it asks its clients
/// for a certificate, `yes` or `no`.
pub fn server_arguments(folder: &Path, name: &str, port: &str, asks: &str) -> Vec<String> {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (certificate, key, ca) = (file(&format!("{name}.crt")), file(&format!("{name}.key")), file("ca.crt"));
    let all = ["--tls-port", port, "--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    all.into_iter().chain(["--tls-auth-clients", asks]).map(str::to_owned).collect()
}
