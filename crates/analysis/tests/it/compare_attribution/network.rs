//! Small networks of random operators, computed twice.

use std::fs;
use std::path::Path;

use half::{bf16, f16};
use opscope_store::file_format::dump_data::{
    DumpHeader, TensorEntry, VERSION, dtype_code, with_length,
};
use opscope_tensor::DType;

/// Rows and columns of every tensor.
const N: usize = 16;

/// Numbers that look random and are the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// About normally distributed.
    fn normal(&mut self) -> f64 {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let sum: f64 = (0..12).map(|_| uniform(self.next())).sum();
        sum - 6.0
    }
}

/// The computation of an operator; weights are constants that no operator makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    MatMul,
    Add,
    Sub,
    Mul,
    Relu,
    Tanh,
    Transpose,
    Softmax,
    Exp,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Input(usize),
    Weight(usize),
    Node(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) operands: Vec<Operand>,
}

#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    inputs: Vec<Vec<f64>>,
    weights: Vec<Vec<f64>>,
}

/// How a side computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arithmetic {
    /// Sums in float64, results in float32.
    Exact,
    /// Everything in float32, sums from the other end.
    F32,
    F16,
    BF16,
}

/// The fault on the target side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// The weight of a product.
    Weight(usize),
    /// One element of an output.
    Output(usize),
    /// The same, where the dump has no inputs of the operator.
    OutputWithoutInputs(usize),
    /// The same, where the file of the operator is damaged.
    OutputOfDamaged(usize),
    /// One element becomes NaN.
    NotANumber(usize),
    /// A rounding to bfloat16 behind an operator that is no part of the golden network.
    Cast(usize),
    /// An operator is left out, its first operand passed on.
    Removed(usize),
}

impl Executed {
    /// The operator under another type.
    pub(crate) fn rename(&mut self, op_type: &str) {
        self.op_type = op_type.to_owned();
    }

    /// Dumped after it wrote its output to where its first input was.
    pub(crate) fn write_in_place(&mut self) {
        self.inputs[0] = self.output.clone();
    }

    /// Dumped by its output alone.
    pub(crate) fn drop_inputs(&mut self) {
        self.inputs.clear();
    }
}

/// An executed operator, as it is dumped.
pub(crate) struct Executed {
    pub(crate) op_type: String,
    pub(crate) op_name: String,
    inputs: Vec<Vec<f64>>,
    output: Vec<f64>,
    is_damaged: bool,
}

impl Network {
    pub(crate) fn random(random: &mut Random) -> Network {
        let tensor = |random: &mut Random| (0..N * N).map(|_| random.normal()).collect();
        let mut network = Network {
            nodes: Vec::new(),
            inputs: (0..2).map(|_| tensor(random)).collect(),
            weights: Vec::new(),
        };
        let kinds = [
            Kind::MatMul,
            Kind::MatMul,
            Kind::Add,
            Kind::Sub,
            Kind::Mul,
            Kind::Relu,
            Kind::Tanh,
            Kind::Transpose,
            Kind::Softmax,
            Kind::Exp,
        ];
        for i in 0..6 + random.below(8) {
            let kind = kinds[random.below(kinds.len())];
            // Mostly what came right before, so that faults travel.
            let pick = |random: &mut Random| match random.below(6) {
                0 => Operand::Input(random.below(2)),
                _ if i == 0 => Operand::Input(0),
                1 => Operand::Node(random.below(i)),
                _ => Operand::Node(i - 1),
            };
            let mut operands = vec![pick(random)];
            match kind {
                Kind::MatMul => {
                    network.weights.push(tensor(random));
                    operands.push(Operand::Weight(network.weights.len() - 1));
                }
                Kind::Add | Kind::Sub | Kind::Mul => {
                    // A difference of a value with itself is nothing.
                    let other = pick(random);
                    let is_same = other == operands[0];
                    operands.push(if is_same { Operand::Input(1) } else { other });
                    if operands[0] == operands[1] {
                        operands[1] = Operand::Input(0);
                    }
                }
                _ => {}
            }
            network.nodes.push(Node { kind, operands });
        }
        network
    }

    /// Nodes that read a node.
    pub(crate) fn readers(&self, node: usize) -> Vec<usize> {
        let is_reader = |&i: &usize| self.nodes[i].operands.contains(&Operand::Node(node));
        (0..self.nodes.len()).filter(is_reader).collect()
    }

    pub(crate) fn run(&self, arithmetic: Arithmetic, fault: Fault) -> Vec<Executed> {
        let mut executed = Vec::new();
        let mut values: Vec<Vec<f64>> = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let operand = |operand: &Operand| {
                let mut value = match *operand {
                    Operand::Input(k) => self.inputs[k].clone(),
                    Operand::Weight(k) => self.weights[k].clone(),
                    Operand::Node(k) => values[k].clone(),
                };
                if matches!(operand, Operand::Weight(_)) && fault == Fault::Weight(i) {
                    value.iter_mut().step_by(3).for_each(|x| *x *= 1.5);
                }
                round(&mut value, arithmetic);
                value
            };
            let inputs: Vec<Vec<f64>> = node.operands.iter().map(operand).collect();
            if fault == Fault::Removed(i) {
                values.push(inputs[0].clone());
                continue;
            }
            let mut output = compute(node.kind, &inputs, arithmetic);
            round(&mut output, arithmetic);
            let at = (i * 37) % output.len();
            let largest = output.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            match fault {
                Fault::Output(k) | Fault::OutputWithoutInputs(k) | Fault::OutputOfDamaged(k)
                    if k == i =>
                {
                    output[at] += 2.0 * largest + 1.0;
                    round(&mut output, arithmetic);
                }
                Fault::NotANumber(k) if k == i => output[at] = f64::NAN,
                _ => {}
            }
            let has_inputs = fault != Fault::OutputWithoutInputs(i);
            executed.push(Executed {
                op_type: format!("{:?}", node.kind),
                op_name: format!("node_{i}"),
                inputs: if has_inputs { inputs } else { Vec::new() },
                output: output.clone(),
                is_damaged: fault == Fault::OutputOfDamaged(i),
            });
            if fault == Fault::Cast(i) {
                let input = output.clone();
                round(&mut output, Arithmetic::BF16);
                executed.push(Executed {
                    op_type: "Cast".to_owned(),
                    op_name: format!("inserted_{i}"),
                    inputs: vec![input],
                    output: output.clone(),
                    is_damaged: false,
                });
            }
            values.push(output);
        }
        executed
    }
}

fn compute(kind: Kind, inputs: &[Vec<f64>], arithmetic: Arithmetic) -> Vec<f64> {
    let (a, b) = (&inputs[0], inputs.last().unwrap());
    let pairs = |f: fn(f64, f64) -> f64| a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect();
    let each = |f: fn(f64) -> f64| a.iter().map(|&x| f(x)).collect();
    match kind {
        Kind::MatMul => product(a, b, arithmetic),
        Kind::Add => pairs(|x, y| x + y),
        Kind::Sub => pairs(|x, y| x - y),
        Kind::Mul => pairs(|x, y| x * y),
        Kind::Relu => each(|x| if x < 0.0 { 0.0 } else { x }),
        Kind::Tanh => each(f64::tanh),
        // Half of the value, so that it stays within float16.
        Kind::Exp => each(|x| if x > 10.0 { 150.0 } else { (x / 2.0).exp() }),
        Kind::Softmax => a.chunks(N).flat_map(softmax).collect(),
        Kind::Transpose => (0..N * N).map(|i| a[i % N * N + i / N]).collect(),
    }
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|x| x / sum).collect()
}

fn product(a: &[f64], b: &[f64], arithmetic: Arithmetic) -> Vec<f64> {
    let scale = 1.0 / (N as f64).sqrt();
    let mut result = Vec::with_capacity(N * N);
    for (row, column) in (0..N * N).map(|i| (i / N, i % N)) {
        let terms = (0..N).map(|k| a[row * N + k] * b[k * N + column]);
        result.push(match arithmetic {
            Arithmetic::Exact => terms.sum::<f64>() * scale,
            _ => f64::from(terms.rev().map(|x| x as f32).sum::<f32>() * scale as f32),
        });
    }
    result
}

fn round(values: &mut [f64], arithmetic: Arithmetic) {
    for value in values {
        *value = match arithmetic {
            Arithmetic::Exact | Arithmetic::F32 => f64::from(*value as f32),
            Arithmetic::F16 => f16::from_f64(*value).to_f64(),
            Arithmetic::BF16 => bf16::from_f64(*value).to_f64(),
        };
    }
}

/// Writes a file for each operator.
pub(crate) fn write(dir: &Path, executed: &[Executed], arithmetic: Arithmetic) {
    fs::create_dir_all(dir).unwrap();
    let dtype = match arithmetic {
        Arithmetic::Exact | Arithmetic::F32 => DType::F32,
        Arithmetic::F16 => DType::F16,
        Arithmetic::BF16 => DType::BF16,
    };
    for (i, one) in executed.iter().enumerate() {
        let tensors: Vec<Vec<u8>> = one
            .inputs
            .iter()
            .chain([&one.output])
            .map(|t| bytes(t, dtype))
            .collect();
        let entry = |bytes: &Vec<u8>| TensorEntry {
            data_type: dtype_code(dtype).unwrap(),
            format: 2,
            shape: Some(vec![N as u64, N as u64]),
            size: bytes.len() as u64,
            ..TensorEntry::default()
        };
        let header = DumpHeader {
            version: VERSION.to_owned(),
            dump_time: 1_700_000_000_000_000 + i as u64,
            inputs: tensors[..one.inputs.len()].iter().map(entry).collect(),
            outputs: tensors[one.inputs.len()..].iter().map(entry).collect(),
            op_name: one.op_name.clone(),
            ..DumpHeader::default()
        };
        let mut file = with_length(&header);
        tensors.iter().for_each(|bytes| file.extend(bytes));
        if one.is_damaged {
            file.truncate(file.len() / 2);
        }
        let name = format!("{}.{}.{i}.1.{}", one.op_type, one.op_name, header.dump_time);
        fs::write(dir.join(name), file).unwrap();
    }
}

fn bytes(values: &[f64], dtype: DType) -> Vec<u8> {
    let each = values.iter();
    match dtype {
        DType::F16 => each.flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
        DType::BF16 => each
            .flat_map(|&x| bf16::from_f64(x).to_le_bytes())
            .collect(),
        _ => each.flat_map(|&x| (x as f32).to_le_bytes()).collect(),
    }
}
