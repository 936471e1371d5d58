//! A real Chromium, spoken to over the DevTools protocol on a pipe.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Milliseconds that a page is waited for: only a page that hangs takes so long.
const PATIENCE_MS: u32 = 120_000;

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: String,
    n_sent: u64,
    /// Errors of scripts, refused loads and the like.
    pub(crate) complaints: String,
    _home: TempDir,
}

impl Browser {
    /// Starts a browser and opens an address in a window of a size.
    pub(crate) fn open(program: &Path, address: &str, width: u32, height: u32) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        // The protocol is on file descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--hide-scrollbars",
            ])
            // It asks nobody but the page's server.
            .args([
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", home.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let commands = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            child,
            commands,
            answers,
            session: String::new(),
            n_sent: 0,
            complaints: String::new(),
            _home: home,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "DOM", "Accessibility"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(width, height);
        browser.ask("Page.navigate", json!({ "url": address }));
        browser
    }

    /// Gives the window another size.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.ask("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sends a command and returns its result.
    pub(crate) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.n_sent += 1;
        let id = self.n_sent;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        write!(self.commands, "{message}\0").expect("the browser listens");
        self.commands.flush().expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.answers.read_until(0, &mut bytes).expect("the browser answers");
            assert!(bytes.pop().is_some(), "the browser is gone");
            let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == json!(id) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.hear(&answer);
        }
    }

    fn hear(&mut self, event: &Value) {
        let said = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => &event["params"]["exceptionDetails"],
            Some("Log.entryAdded") if event["params"]["entry"]["level"] == "error" => {
                &event["params"]["entry"]["text"]
            }
            _ => return,
        };
        let _ = writeln!(self.complaints, "{said}");
    }

    /// The value of an expression in the page; promises are waited for.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.ask("Runtime.evaluate", parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}\n{result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((done) => {{ const begin = performance.now(); const look = () => {{ \
             let is = false; try {{ is = !!({expression}); }} catch {{}} \
             if (is || performance.now() - begin > {PATIENCE_MS}) done(is); else setTimeout(look, 20); }}; look(); }})"
        );
        if self.eval(&wait) != json!(true) {
            let page = self.eval("document.body.innerText");
            panic!("never came true: {expression}\n{}\n{}", page.as_str().unwrap_or(""), self.complaints);
        }
    }

    /// Light or dark.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.ask("Emulation.setEmulatedMedia", media);
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// Types text where the cursor is.
    pub(crate) fn insert(&mut self, text: &str) {
        self.ask("Input.insertText", json!({ "text": text }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.answers.read_to_end(&mut Vec::new());
    }
}
