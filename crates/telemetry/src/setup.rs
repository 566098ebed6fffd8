use std::sync::Arc;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{self as sdk_logs, BatchLogProcessor, SdkLoggerProvider};
use opentelemetry_sdk::metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream};

use crate::Guard;
use crate::config::{Invalid, Telemetry};
use crate::export::{Background, Collector, ExportStats, LimitedLogs, Spans};
use crate::logging::{self, Logging, Repeats};
use crate::metrics::{Exposition, Factory, Metrics, Signal};
use crate::otlp::Envelope;
use crate::state::{self, State};
use crate::trace::{SamplingDecision, Tracer};

/// Maximum log records that wait for export. Further records are dropped and counted.
const LOG_QUEUE: usize = 4_096;

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configured value is invalid.
    #[error("telemetry.{0}")]
    Invalid(#[from] Invalid),
    /// Logging could not be set up.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// A part could not be started.
    #[error("telemetry cannot start: {0}")]
    Start(String),
    /// Telemetry was set up before.
    #[error("telemetry is set up already")]
    Twice,
}

/// Starts traces, metrics and logs for the process. An unreachable collector is not an error, because exports are
/// retried.
///
/// # Errors
///
/// [`Error`]. Parts that were started are stopped again.
pub fn init(telemetry: &Telemetry, logging: &Logging) -> Result<Guard, Error> {
    telemetry.check()?;
    logging::check(&logging.level)?;
    if state::is_set() {
        return Err(Error::Twice);
    }
    let resource = resource(telemetry);
    let runtime = wants_collector(telemetry)
        .then(Background::start)
        .transpose()
        .map_err(|error| Error::Start(format!("no thread for it: {error}")))?;
    let collector = match (telemetry.address(), &runtime) {
        (Some(address), Some(runtime)) => {
            let runtime = runtime.handle().clone();
            Some(Collector::new(telemetry, address, runtime).map_err(Error::Start)?)
        }
        _ => None,
    };
    let collector = collector.as_ref();
    let tracer = tracer(telemetry, collector, &resource)?;
    let (meters, exposition) = meters(telemetry, collector, &resource)?;
    let loggers = loggers(telemetry, collector, &resource)?;
    let repeats = telemetry
        .limits_repeats()
        .then(|| Arc::new(Repeats::new(&telemetry.logs)));
    logging::install(logging, loggers.as_ref(), repeats.clone())?;

    let factory = match &meters {
        Some(meters) => Factory::on(meters.meter("shoal")),
        None => Factory::off(),
    };
    let state = state::set(State {
        tracer,
        metrics: Metrics::new(&factory),
        exposition,
        meters,
        loggers,
        repeats,
        _runtime: runtime,
    })
    .map_err(|_| Error::Twice)?;
    (state.metrics.process).observe(telemetry.service_version.clone());
    Ok(Guard::new(state))
}

fn wants_collector(telemetry: &Telemetry) -> bool {
    telemetry.has_traces() || telemetry.sends_metrics() || telemetry.sends_logs()
}

fn resource(telemetry: &Telemetry) -> Resource {
    let own = [
        ("service.name", &telemetry.service_name),
        ("service.instance.id", &telemetry.service_instance_id),
        ("service.version", &telemetry.service_version),
    ];
    let set = (own.into_iter())
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| KeyValue::new(key, value.clone()));
    // Leaves out keys of `resource` that a separate setting overrides.
    let given = (telemetry.resource.iter())
        .filter(|(key, _)| own.iter().all(|(other, _)| key != other))
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty()
        .with_attributes(set.chain(given))
        .build()
}

fn tracer(
    telemetry: &Telemetry,
    collector: Option<&Collector<'_>>,
    resource: &Resource,
) -> Result<Option<Tracer>, Error> {
    let traces = &telemetry.traces;
    let Some(collector) = collector.filter(|_| telemetry.has_traces()) else {
        return Ok(None);
    };
    let stats = Arc::new(ExportStats::new(Signal::Traces, traces.queue));
    let sender = collector.sender(Signal::Traces).map_err(Error::Start)?;
    let scope = InstrumentationScope::builder("shoal")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build();
    let envelope = Envelope::new(resource, &scope);
    let spans = Spans::start(traces, envelope, sender, stats, collector.runtime());
    Ok(Some(Tracer::new(SamplingDecision::new(traces), spans)))
}

fn meters(
    telemetry: &Telemetry,
    collector: Option<&Collector<'_>>,
    resource: &Resource,
) -> Result<(Option<SdkMeterProvider>, Option<Exposition>), Error> {
    let metrics = &telemetry.metrics;
    let collector = collector.filter(|_| telemetry.sends_metrics());
    if collector.is_none() && !telemetry.has_prometheus() {
        return Ok((None, None));
    }
    let series = metrics.series;
    let mut builder = SdkMeterProvider::builder()
        .with_resource(resource.clone())
        .with_view(move |_: &Instrument| {
            Stream::builder()
                .with_cardinality_limit(series)
                .build()
                .ok()
        });
    if let Some(collector) = collector {
        let stats = Arc::new(ExportStats::new(Signal::Metrics, 0));
        let exporter = (collector.exporter(Signal::Metrics, stats)).map_err(Error::Start)?;
        let reader = PeriodicReader::builder(exporter)
            .with_interval(metrics.interval.get())
            .build();
        builder = builder.with_reader(reader);
    }
    let mut exposition = None;
    if telemetry.has_prometheus() {
        let (text, reader) = Exposition::new().map_err(|error| Error::Start(error.to_string()))?;
        builder = builder.with_reader(reader);
        exposition = Some(text);
    }
    Ok((Some(builder.build()), exposition))
}

fn loggers(
    telemetry: &Telemetry,
    collector: Option<&Collector<'_>>,
    resource: &Resource,
) -> Result<Option<SdkLoggerProvider>, Error> {
    let Some(collector) = collector.filter(|_| telemetry.sends_logs()) else {
        return Ok(None);
    };
    let stats = Arc::new(ExportStats::new(Signal::Logs, LOG_QUEUE));
    let exporter = (collector.exporter(Signal::Logs, Arc::clone(&stats))).map_err(Error::Start)?;
    let batches = BatchLogProcessor::builder(exporter)
        .with_batch_config(
            sdk_logs::BatchConfigBuilder::default()
                .with_max_queue_size(LOG_QUEUE)
                .with_max_export_batch_size(512)
                .build(),
        )
        .build();
    let provider = SdkLoggerProvider::builder()
        .with_resource(resource.clone())
        .with_log_processor(LimitedLogs::new(batches, stats))
        .build();
    Ok(Some(provider))
}
