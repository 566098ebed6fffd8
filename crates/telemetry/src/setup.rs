//! Sets telemetry up, once for a process.

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::Guard;
use crate::config::{Invalid, Telemetry};
use crate::logging::{self, Logging};
use crate::metrics::{Exposition, Factory, Metrics};
use crate::state::{self, State};

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the configuration cannot be used.
    #[error("telemetry.{0}")]
    Invalid(#[from] Invalid),
    /// Logging could not be set up.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// A part of it could not be started.
    #[error("telemetry cannot start: {0}")]
    Start(String),
    /// Somebody was first.
    #[error("telemetry is set up already")]
    Twice,
}

/// Traces, counts and logs from now on, for the whole process.
///
/// A collector that cannot be reached is no error: exports are tried again and again.
///
/// # Errors
/// [`Error`]; nothing has been started then.
pub fn init(telemetry: &Telemetry, logging: &Logging) -> Result<Guard, Error> {
    telemetry.check()?;
    logging::init(logging)?;
    let (exposition, reader) =
        Exposition::new().map_err(|error| Error::Start(error.to_string()))?;
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let factory = Factory::on(provider.meter("shoal"));
    state::set(State {
        tracer: None,
        metrics: Metrics::new(&factory),
        exposition: telemetry.metrics.prometheus.then_some(exposition),
    })
    .map_err(|_| Error::Twice)?;
    state::metrics()
        .process
        .observe(telemetry.service_version.clone());
    Ok(Guard::new())
}
