use tempfile::TempDir;

use crate::{
    Result,
    arguments::{Arguments, Workload},
    comparison::Comparison,
    data::Sizes,
    engine::Engine,
    reads,
    table::Table,
    writes,
};

/// What is to be done with one engine.
pub(crate) struct Plan<'a> {
    arguments: &'a Arguments,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) sizes: Sizes,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(arguments: &'a Arguments, engine: &'a dyn Engine) -> Self {
        Self { arguments, engine, sizes: Sizes::new(arguments) }
    }

    pub(crate) fn run(&self, table: &mut Table) -> Result<()> {
        if self.wants(Workload::Load) {
            writes::load(self, table)?;
        }
        if self.wants(Workload::Zipf) {
            writes::zipf(self, table)?;
        }
        if self.wants(Workload::Get) || self.wants(Workload::Range) {
            reads::get_and_range(self, table)?;
        }
        Ok(())
    }

    pub(crate) fn wants(&self, workload: Workload) -> bool {
        self.arguments.wants(workload) && self.engine.has(workload)
    }

    pub(crate) const fn rounds(&self) -> u64 {
        self.arguments.rounds
    }

    /// A fresh directory, deleted when it is dropped.
    pub(crate) fn directory(&self) -> Result<TempDir> {
        Ok(match &self.arguments.directory {
            Some(directory) => tempfile::tempdir_in(directory)?,
            None => tempfile::tempdir()?,
        })
    }

    pub(crate) fn report(
        &self,
        table: &mut Table,
        workload: Workload,
        name: &str,
        operations: usize,
        comparison: Comparison,
    ) {
        table.push(self.engine.name(), name, operations, comparison, self.engine.aim(workload));
    }
}
