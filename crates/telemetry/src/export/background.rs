use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

#[derive(Debug)]
pub(crate) struct Background(Option<Runtime>);

impl Background {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("telemetry")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        let runtime = self.0.as_ref().expect("it is there until the drop");
        runtime.handle()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Does not wait for the runtime's tasks: that would block the thread, and panic in async code.
            runtime.shutdown_background();
        }
    }
}
