use clap::{Parser, ValueEnum, builder::RangedU64ValueParser, value_parser};
use kstate_kafka::app::Guarantee;

/// Finds the address of each order's customer, which takes long, with several workers; and checks the result.
#[derive(Debug, Parser)]
#[command(version, name = "enrichment")]
pub(crate) struct Cli {
    /// How many orders there are; one of them is poison
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) orders: u32,

    /// How many of them are looked up at the same time
    #[arg(long, value_name = "N", default_value = "8", value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) workers: usize,

    /// How long a look-up takes, in milliseconds; one in fifty takes twenty times as long
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) lookup_ms: u16,

    /// A real Kafka cluster; the topics of this run are made there and deleted at the end
    /// [default: a small cluster embedded in this process]
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(crate) brokers: Option<String>,

    /// How each checkpoint is committed; `exactly-once` needs a real cluster
    #[arg(long, value_enum, default_value_t = GuaranteeKind::AtLeastOnce, requires_if("exactly-once", "brokers"))]
    pub(crate) guarantee: GuaranteeKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GuaranteeKind {
    /// One part after the other.
    AtLeastOnce,
    /// In one transaction.
    ExactlyOnce,
}

impl From<GuaranteeKind> for Guarantee {
    fn from(kind: GuaranteeKind) -> Self {
        match kind {
            GuaranteeKind::AtLeastOnce => Self::AtLeastOnce,
            GuaranteeKind::ExactlyOnce => Self::ExactlyOnce,
        }
    }
}
