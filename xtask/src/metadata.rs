//! What cargo knows about the workspace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cargo;
use crate::child;
use crate::failure::{Failure, Result};

/// A package and what is compiled into it.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// It may be uploaded to the registry.
    pub(crate) published: bool,
    /// The native library it is linked with, if any.
    pub(crate) links: Option<String>,
    pub(crate) member: bool,
    /// The names of its integration tests.
    pub(crate) tests: Vec<String>,
    /// The ids of its dependencies, those of its tests left out.
    pub(crate) dependencies: Vec<String>,
}

/// All packages by their ids, with all features.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) packages: BTreeMap<String, Package>,
}

impl Metadata {
    pub(crate) fn read() -> Result<Self> {
        let mut command = cargo::cargo("metadata");
        command.args(["--format-version", "1", "--all-features"]);
        let text = child::capture(command)?;
        let value =
            serde_json::from_str(&text).map_err(|error| Failure::because("the output of cargo metadata", error))?;
        Ok(Self::parse(&value))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|package| package.member)
    }

    /// The names of the integration tests of the workspace, each once.
    pub(crate) fn integration_tests(&self) -> BTreeSet<&str> {
        self.members().flat_map(|package| package.tests.iter().map(String::as_str)).collect()
    }

    fn parse(value: &Value) -> Self {
        let members: BTreeSet<&str> = list(value, "workspace_members").filter_map(Value::as_str).collect();
        let mut packages: BTreeMap<String, Package> = list(value, "packages")
            .map(|package| {
                let id = text(package, "id");
                let parsed = Package {
                    name: text(package, "name").to_owned(),
                    // `publish = false` is an empty list of registries, and the default is none at all.
                    published: package.get("publish").and_then(Value::as_array).is_none_or(|list| !list.is_empty()),
                    links: package.get("links").and_then(Value::as_str).map(str::to_owned),
                    member: members.contains(id),
                    tests: list(package, "targets")
                        .filter(|t| is_integration_test(t))
                        .map(|t| text(t, "name").into())
                        .collect(),
                    dependencies: Vec::new(),
                };
                (id.to_owned(), parsed)
            })
            .collect();
        for node in value.get("resolve").into_iter().flat_map(|resolve| list(resolve, "nodes")) {
            if let Some(package) = packages.get_mut(text(node, "id")) {
                package.dependencies = list(node, "deps")
                    .filter(|dep| is_compiled_in(dep))
                    .map(|dep| text(dep, "pkg").to_owned())
                    .collect();
            }
        }
        Self { packages }
    }
}

fn is_integration_test(target: &Value) -> bool {
    list(target, "kind").any(|kind| kind == "test")
}

/// Normal and build dependencies; `dev` are those of the package's own tests.
fn is_compiled_in(dependency: &Value) -> bool {
    list(dependency, "dep_kinds").any(|kind| kind.get("kind").is_none_or(|kind| kind != "dev"))
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Metadata;

    #[test]
    fn leaves_the_dependencies_of_tests_out() {
        let metadata = Metadata::parse(&json!({
            "workspace_members": ["ours"],
            "packages": [
                {"id": "ours", "name": "kstate-ours", "publish": [], "links": null, "targets": [
                    {"name": "kstate_ours", "kind": ["lib"]}, {"name": "broker", "kind": ["test"]}
                ]},
                {"id": "engine", "name": "engine-sys", "publish": null, "links": "engine", "targets": []},
            ],
            "resolve": {"nodes": [{"id": "ours", "deps": [
                {"pkg": "engine", "dep_kinds": [{"kind": "dev"}]},
                {"pkg": "bytes", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
            ]}]},
        }));
        let ours = metadata.members().next().unwrap();
        assert_eq!(
            (ours.name.as_str(), ours.published, ours.dependencies.as_slice()),
            ("kstate-ours", false, &["bytes".to_owned()][..])
        );
        assert_eq!(metadata.integration_tests().into_iter().collect::<Vec<_>>(), ["broker"]);
        assert_eq!(metadata.packages["engine"].links.as_deref(), Some("engine"));
        assert!(metadata.packages["engine"].published && !metadata.packages["engine"].member);
    }
}
