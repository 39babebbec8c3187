use std::fmt;

use crate::report::{ApplicationReport, Report, TaskReport};

const HEAD: [&str; 7] = ["task", "store", "changelog", "committed", "end", "lag", "status"];

/// The report as people read it.
pub(crate) struct Table<'r>(pub(crate) &'r Report);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.applications.is_empty() {
            return writeln!(f, "There is no application's state.");
        }
        for (number, application) in self.0.applications.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write_application(f, application)?;
        }
        Ok(())
    }
}

fn write_application(f: &mut fmt::Formatter<'_>, application: &ApplicationReport) -> fmt::Result {
    let use_of_it = if application.in_use { "in use by a process" } else { "not in use" };
    writeln!(f, "{}: {use_of_it}", application.application)?;
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(application.tasks.iter().flat_map(rows_of));
    let widths = [0, 1, 2, 3, 4, 5].map(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    });
    let [task_width, store_width, changelog_width, committed_width, end_width, lag_width] = widths;
    if !application.tasks.is_empty() {
        for [task, store, changelog, committed, end, lag, status] in &rows {
            writeln!(
                f,
                "  {task:<task_width$}  {store:<store_width$}  {changelog:<changelog_width$}  \
                 {committed:>committed_width$}  {end:>end_width$}  {lag:>lag_width$}  {status}"
            )?;
        }
    }
    if !application.empty.is_empty() {
        writeln!(f, "  no state: {}", application.empty.join(", "))?;
    }
    for path in &application.unfamiliar {
        writeln!(f, "  unfamiliar, left alone: {path}")?;
    }
    Ok(())
}

fn rows_of(task: &TaskReport) -> Vec<[String; HEAD.len()]> {
    let dash = || "-".to_owned();
    let number = |number: Option<String>| number.unwrap_or_else(dash);
    if let Some(error) = &task.error {
        return vec![[task.task.clone(), dash(), dash(), dash(), dash(), dash(), error.clone()]];
    }
    let stores = task.stores.iter().map(|store| {
        let log = store.log.as_ref();
        let mut status = store.status.text().to_owned();
        for more in [&store.error, &log.and_then(|log| log.error.clone())].into_iter().flatten() {
            status = format!("{status}: {more}");
        }
        if log.is_some_and(|log| log.diverged) {
            status.push_str(", beyond the end of its changelog: it has to start over");
        }
        [
            task.task.clone(),
            store.store.clone(),
            store.changelog.clone(),
            number(store.committed.map(|offset| offset.to_string())),
            number(log.and_then(|log| log.end).map(|end| end.to_string())),
            number(log.and_then(|log| log.lag).map(|lag| lag.to_string())),
            status,
        ]
    });
    stores.collect()
}
