//! The workloads that a suite can name, one line each.

use dyno_suite::protocol::{Reply, Request};

use crate::{
    Params, RigError, chain, clickhouse, feeds, ingest, kafka, llm, pages, pipeline, pubsub, query,
    resp, sage, tpcc, tpch, txn,
};

/// Runs one workload. The last argument is the peer to stand in for; `None` for our own engine.
type Run = fn(&mut Params<'_>, &Request, Option<&str>) -> Result<Reply, RigError>;

/// A workload and the name under which suites know it.
pub(crate) struct Workload {
    name: &'static str,
    pub run: Run,
}

const fn workload(name: &'static str, run: Run) -> Workload {
    Workload { name, run }
}

const WORKLOADS: &[Workload] = &[
    workload("ingest-gen", |p, r, _| ingest::generate(p, &r.scratch)),
    workload("ingest-parquet", |p, r, _| ingest::parquet(p, &r.scratch)),
    workload("ingest-next", |p, r, _| ingest::next(p, &r.scratch)),
    workload("ingest-load", |p, r, _| ingest::load(p, &r.scratch)),
    workload("feeds-gen", |p, r, _| feeds::generate(p, &r.scratch)),
    workload("feeds-load", |p, r, _| feeds::load(p, &r.scratch)),
    workload("ingest-pipeline", |p, r, _| {
        pipeline::pipeline(p, &r.scratch)
    }),
    workload("clickhouse-load", |p, r, peer| {
        clickhouse::load(p, &r.scratch, peer)
    }),
    workload("chain", |p, r, _| chain::chain(p, r)),
    workload("query-prepare", |p, r, _| query::prepare(p, &r.scratch)),
    workload("query-top-ten", |p, _, _| query::top_ten(p)),
    workload("query-spots", |p, _, _| query::spots(p)),
    workload("ingest-features", |p, r, _| sage::features(p, &r.scratch)),
    workload("sage-train", |p, r, _| sage::train(p, r)),
    workload("llm-beside", |p, r, _| llm::beside(p, r)),
    workload("tpch-write", |p, r, _| tpch::write(p, r)),
    workload("pubsub-flow", pubsub::flow),
    workload("pubsub-queue", pubsub::queue),
    workload("pubsub-capacity", pubsub::capacity),
    workload("pubsub-commits", pubsub::commits),
    workload("kafka-produce", kafka::produce),
    workload("kafka-consume", kafka::consume),
    workload("resp-run", resp::run),
    workload("resp-ycsb", resp::ycsb),
    workload("txn-rpc", |p, r, _| txn::rpc(p, r)),
    workload("txn-transport", |p, r, _| txn::transport(p, r)),
    workload("txn-calls-server", |p, r, _| txn::calls_server(p, r)),
    workload("txn-k2", txn::k2),
    workload("txn-k2-capacity", txn::k2_capacity),
    workload("tpcc-run", tpcc::run),
    workload("pages-corpus", |p, r, _| pages::corpus(p, r)),
    workload("pages-codec", |p, r, _| pages::codec(p, r)),
    workload("pages-store", pages::store),
    workload("pages-device", pages::device),
    workload("pages-fault", |p, r, _| pages::fault(p, r)),
    workload("pages-space", pages::space),
    workload("pages-restore", pages::restore),
];

/// # Errors
/// No rig has a workload of this name.
pub(crate) fn find(name: &str) -> Result<&'static Workload, RigError> {
    WORKLOADS
        .iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| {
            let names = WORKLOADS.iter().map(|workload| workload.name);
            let names: Vec<&str> = names.chain(["version"]).collect();
            RigError::Unknown(dyno_suite::Error::unknown("workload", name, &names))
        })
}
