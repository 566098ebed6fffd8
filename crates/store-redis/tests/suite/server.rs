use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

pub(crate) const LONG_ENOUGH: Duration = Duration::from_secs(30);

pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-redis-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Server {
    child: Child,
    args: Vec<String>,
    pub(crate) directory: Directory,
    admin: redis::Client,
}

pub(crate) fn knows_tls() -> bool {
    let args = ["--port", "0", "--tls-port", "0", "--no-such-directive", "1"];
    let told = Command::new("redis-server").args(args).output().unwrap();
    let told = [told.stdout, told.stderr].concat();
    String::from_utf8_lossy(&told).contains("'no-such-directive")
}

pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let taken = [(); N].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    taken.map(|listener| listener.local_addr().unwrap().port())
}

impl Server {
    pub(crate) async fn on_socket(args: &[&str]) -> Self {
        let directory = Directory::new();
        let socket = directory.path("s").display().to_string();
        let admin = format!("redis+unix://{socket}");
        let mut all = vec!["--port", "0", "--unixsocket", &socket];
        all.extend(args);
        let started = Self::start(directory, &all, &admin).await;
        started.expect("the server starts")
    }

    pub(crate) async fn on_port(args: impl Fn(u16, &Directory) -> Vec<String>) -> (Self, u16) {
        for _ in 0..5 {
            let [port] = free_ports();
            let directory = Directory::new();
            let args = args(port, &directory);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let socket = directory.path("s").display().to_string();
            let admin = format!("redis+unix://{socket}");
            let mut all = args;
            all.extend(["--bind", "127.0.0.1", "--unixsocket", &socket]);
            if let Ok(server) = Self::start(directory, &all, &admin).await {
                return (server, port);
            }
        }
        panic!("no server starts");
    }

    pub(crate) async fn start(
        directory: Directory,
        args: &[&str],
        admin: &str,
    ) -> Result<Self, &'static str> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut server = Self {
            child: spawn(&args, &directory.0),
            args,
            directory,
            admin: redis::Client::open(admin).unwrap(),
        };
        if server.is_up().await {
            return Ok(server);
        }
        Err("it does not answer")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.directory.path("s").display())
    }

    async fn is_up(&mut self) -> bool {
        let until = Instant::now() + LONG_ENOUGH;
        while Instant::now() < until {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if self.try_ask(&["PING"]).await.is_ok() {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    }

    async fn try_ask(&self, command: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut connection = self.admin.get_multiplexed_async_connection().await?;
        let mut asked = redis::cmd(command[0]);
        asked.arg(&command[1..]);
        asked.query_async(&mut connection).await
    }

    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let reply = self.try_ask(command).await.unwrap();
        redis::from_redis_value(reply).unwrap()
    }

    pub(crate) async fn restore(&self, key: &str, life: i64, dump: &[u8]) {
        let connection = self.admin.get_multiplexed_async_connection();
        let mut connection = connection.await.unwrap();
        let mut command = redis::cmd("RESTORE");
        command.arg(key).arg(life).arg(dump);
        command.exec_async(&mut connection).await.unwrap();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) async fn start_again(&mut self) {
        self.kill();
        self.child = spawn(&self.args, &self.directory.0);
        assert!(self.is_up().await, "the server starts again");
    }

    pub(crate) fn hang(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(args: &Vec<String>, directory: &Path) -> Child {
    let mut command = Command::new("redis-server");
    let log = std::fs::File::create(directory.join("log")).unwrap();
    command
        .current_dir(directory)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null());
    command.spawn().expect("redis-server is installed")
}

pub(crate) const IN_MEMORY: [&str; 4] = ["--save", "", "--appendonly", "no"];
