use super::*;

#[test]
fn tmp_print() {
    let Ok(list) = std::env::var("PAIRS") else {
        return;
    };
    for pair in list.split(',') {
        let (a, b) = pair.split_once(':').unwrap();
        let a = proto::read(a.as_ref()).unwrap().proto.graph.unwrap();
        let out = format!("{b}.json");
        let b = proto::read(b.as_ref()).unwrap().proto.graph.unwrap();
        let start = std::time::Instant::now();
        let found = origins(&a, &b);
        eprintln!("{out} {:?} {} nodes", start.elapsed(), found.len());
        let nodes = proto::all_nodes(&b);
        let rows: Vec<_> = nodes.iter().zip(&found).map(|(n, o)| serde_json::json!({"type": n.op_type, "domain": n.domain, "name": n.name, "in": n.input, "out": n.output, "names": o.names, "outputs": o.outputs})).collect();
        std::fs::write(out, serde_json::to_string(&rows).unwrap()).unwrap();
    }
}
