//! Proves that the arrows between our crates are those of the plan, and that nothing heavy is below the contract.

use std::collections::{BTreeMap, VecDeque};

use crate::failure::{Failure, Result};
use crate::house::{API, NOT_BELOW_API, allowed_below};
use crate::metadata::{Metadata, Package};
use crate::report;

pub(crate) fn check() -> Result<()> {
    report::step("dependencies between our crates, and below kstate-api");
    let metadata = Metadata::read()?;
    let mut faults = wrong_arrows(&metadata);
    let (below, mut heavy) = below_api(&metadata)?;
    faults.append(&mut heavy);
    if faults.is_empty() {
        report::note(&format!("{API} rests on {below} packages, none of them an engine, a Kafka client or a runtime"));
        return Ok(());
    }
    for fault in &faults {
        report::note(fault);
    }
    Err(Failure::new(format!("{} wrong dependencies, listed above", faults.len())))
}

fn wrong_arrows(metadata: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    for package in metadata.members() {
        let ours = package
            .dependencies
            .iter()
            .filter_map(|id| metadata.packages.get(id))
            .filter(|dependency| dependency.member)
            .map(|dependency| dependency.name.as_str());
        match allowed_below(&package.name) {
            Some(allowed) => faults
                .extend(ours.filter(|name| !allowed.contains(name)).map(|name| {
                    format!("{} -> {name} is not an arrow of the plan (xtask/src/house.rs)", package.name)
                })),
            None if package.published => faults.push(format!(
                "{} is a library without a place in the plan (xtask/src/house.rs); a program says `publish = false`",
                package.name
            )),
            // Programs may depend on every library, and on the programs' own helpers.
            None => {}
        }
    }
    faults
}

/// How many packages are below the contract, and the way to each that may not be.
fn below_api(metadata: &Metadata) -> Result<(usize, Vec<String>)> {
    let (api, package) = metadata
        .packages
        .iter()
        .find(|(_, package)| package.member && package.name == API)
        .ok_or_else(|| Failure::new(format!("the workspace has no {API}")))?;
    let mut ways = BTreeMap::from([(api.as_str(), package.name.clone())]);
    let mut next = VecDeque::from([(api.as_str(), package)]);
    let mut faults = Vec::new();
    while let Some((id, package)) = next.pop_front() {
        let way = ways.get(id).cloned().unwrap_or_default();
        if is_heavy(package) {
            faults.push(format!("{way} may not be there"));
        }
        for below in &package.dependencies {
            if let Some(dependency) = metadata.packages.get(below).filter(|_| !ways.contains_key(below.as_str())) {
                ways.insert(below, format!("{way} -> {}", dependency.name));
                next.push_back((below, dependency));
            }
        }
    }
    Ok((ways.len() - 1, faults))
}

fn is_heavy(package: &Package) -> bool {
    package.links.is_some() || NOT_BELOW_API.contains(&package.name.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{below_api, wrong_arrows};
    use crate::metadata::{Metadata, Package};

    fn metadata(packages: &[(&str, bool, &[&str])]) -> Metadata {
        let packages = packages.iter().map(|(name, member, dependencies)| {
            let package = Package {
                name: (*name).to_owned(),
                published: true,
                member: *member,
                links: name.ends_with("-sys").then(|| (*name).to_owned()),
                dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
                ..Package::default()
            };
            ((*name).to_owned(), package)
        });
        Metadata { packages: packages.collect::<BTreeMap<_, _>>() }
    }

    #[test]
    fn names_an_arrow_that_is_not_in_the_plan() {
        let good = metadata(&[("kstate-api", true, &[]), ("kstate-store-redb", true, &["kstate-api"])]);
        assert!(wrong_arrows(&good).is_empty());
        let bad = metadata(&[("kstate-store-redb", true, &["kstate-checkpoint"]), ("kstate-checkpoint", true, &[])]);
        assert_eq!(wrong_arrows(&bad).len(), 1);
        assert!(wrong_arrows(&bad)[0].starts_with("kstate-store-redb -> kstate-checkpoint"));
        let unplanned = metadata(&[("kstate-surprise", true, &[])]);
        assert!(wrong_arrows(&unplanned)[0].starts_with("kstate-surprise"));
    }

    #[test]
    fn tells_the_way_to_what_may_not_be_below_the_contract() {
        let light = metadata(&[("kstate-api", true, &["bytes"]), ("bytes", false, &[]), ("tokio", false, &[])]);
        assert_eq!(below_api(&light).unwrap(), (1, vec![]));
        let heavy = metadata(&[
            ("kstate-api", true, &["helper"]),
            ("helper", false, &["tokio", "z-sys"]),
            ("tokio", false, &[]),
            ("z-sys", false, &[]),
        ]);
        let (below, faults) = below_api(&heavy).unwrap();
        assert_eq!(below, 3);
        assert_eq!(
            faults,
            ["kstate-api -> helper -> tokio may not be there", "kstate-api -> helper -> z-sys may not be there"]
        );
    }
}
