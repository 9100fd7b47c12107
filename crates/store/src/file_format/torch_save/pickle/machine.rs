//! Carrying out the opcodes of a pickle on a stack of values.

use std::collections::HashMap;

use super::{
    N_MARKS_MAX, N_MEMO_MAX, N_VALUES_MAX, NAME_BYTES_MAX, Pickle, PickleCall, PickleName,
    PickleValue, TEXT_BYTES_MAX, ValueId, excerpt,
};
use crate::FormatError;

/// The lowest protocol that is read, and the highest.
const PROTOCOLS: [u8; 2] = [2, 5];
/// Module and name of a dictionary that keeps an order, which all do here.
const ORDERED_DICT: PickleName<'_> = PickleName("collections", "OrderedDict");

/// A pickle on its way.
pub(super) struct PickleMachine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the opcode is that is being carried out.
    start: usize,
    is_known: fn(PickleName<'_>) -> bool,
    values: Vec<PickleValue<'a>>,
    stack: Vec<ValueId>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, ValueId>,
    n_pushed: usize,
    n_text_bytes: usize,
}

impl<'a> PickleMachine<'a> {
    pub(super) fn new(bytes: &'a [u8], is_known: fn(PickleName<'_>) -> bool) -> PickleMachine<'a> {
        PickleMachine {
            bytes,
            at: 0,
            start: 0,
            is_known,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            n_pushed: 0,
            n_text_bytes: 0,
        }
    }

    /// The only value that is left.
    pub(super) fn finish(mut self) -> Result<Pickle<'a>, FormatError> {
        let root = self.pop()?;
        // Python takes no notice of what is left, where something could hide.
        if !self.stack.is_empty() || !self.marks.is_empty() || self.at < self.bytes.len() {
            return Err(self.error("one value and the pickle's end", "more"));
        }
        Ok(Pickle {
            values: self.values,
            root,
        })
    }

    /// Carries out one opcode; false behind the last one.
    pub(super) fn step(&mut self) -> Result<bool, FormatError> {
        self.start = self.at;
        let [opcode] = self.array()?;
        match opcode {
            b'.' => return Ok(false),
            0x80 => self.check_protocol()?,
            // A frame says how far to read ahead, which a slice has no use for.
            0x95 => {
                self.array::<8>()?;
            }
            b'(' => self.mark()?,
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.pop_to_mark()?;
            }
            b'2' => {
                let top = self.top()?;
                self.push_again(top)?;
            }
            b'q' | b'r' | 0x94 => self.remember(opcode)?,
            b'h' | b'j' => self.recall(opcode)?,
            b'c' | 0x93 => self.name(opcode)?,
            // Creating an object is a call of its class: the two are equivalent here.
            b'R' | 0x81 => self.call()?,
            b'b' => self.build()?,
            b'Q' => {
                let id = self.pop()?;
                self.push(PickleValue::Persistent(id))?;
            }
            b'a' | b'e' | 0x90 | b's' | b'u' => self.add_items(opcode)?,
            _ => {
                let value = self.plain(opcode)?;
                self.push(value)?;
            }
        }
        Ok(true)
    }

    /// A value whose opcode says it, or puts it together from values on the stack.
    fn plain(&mut self, opcode: u8) -> Result<PickleValue<'a>, FormatError> {
        Ok(match opcode {
            b'N' => PickleValue::None,
            0x88 | 0x89 => PickleValue::Bool(opcode == 0x88),
            b'J' => PickleValue::Int(i32::from_le_bytes(self.array()?).into()),
            b'K' => PickleValue::Int(u8::from_le_bytes(self.array()?).into()),
            b'M' => PickleValue::Int(u16::from_le_bytes(self.array()?).into()),
            0x8a | 0x8b => self.long(opcode)?,
            b'G' => PickleValue::Float(f64::from_be_bytes(self.array()?)),
            b'X' | 0x8c | 0x8d => PickleValue::Text(self.text(opcode)?),
            b'B' | b'C' | 0x8e | 0x96 => PickleValue::Bytes(self.counted(opcode)?),
            b')' => PickleValue::Tuple(Vec::new()),
            b't' => PickleValue::Tuple(self.pop_to_mark()?),
            0x85..=0x87 => PickleValue::Tuple(self.pop_many(usize::from(opcode - 0x84))?),
            b']' => PickleValue::List(Vec::new()),
            b'}' => PickleValue::Dict(Vec::new()),
            0x8f => PickleValue::Set(Vec::new()),
            0x91 => PickleValue::Set(self.pop_to_mark()?),
            // Others include the opcodes of protocols 0 and 1, which are not needed, and those that
            // request code from a registry of extensions.
            _ => {
                let found = format!("{opcode:#04x}");
                return Err(self.error("an opcode of plain data, in protocol 2 to 5", &found));
            }
        })
    }

    fn check_protocol(&mut self) -> Result<(), FormatError> {
        let [protocol] = self.array()?;
        let [low, high] = PROTOCOLS;
        if (low..=high).contains(&protocol) {
            return Ok(());
        }
        let expected = format!("protocol {low} to {high}");
        Err(self.error(&expected, &protocol.to_string()))
    }

    fn long(&mut self, opcode: u8) -> Result<PickleValue<'a>, FormatError> {
        let n_bytes = match opcode {
            0x8a => u64::from(u8::from_le_bytes(self.array()?)),
            _ => u64::from(u32::from_le_bytes(self.array()?)),
        };
        let bytes = self.take(n_bytes)?;
        let Some(&last) = bytes.last() else {
            return Ok(PickleValue::Int(0));
        };
        // Two's complement of any width: a byte more says nothing but the sign.
        let sign = if last & 0x80 == 0 { 0 } else { 0xff };
        let (low, high) = bytes.split_at(bytes.len().min(8));
        // The sign fills up what a short number leaves.
        let mut wide = [sign; 8];
        wide.iter_mut().zip(low).for_each(|(to, from)| *to = *from);
        let is_same_sign = (wide[7] & 0x80 == 0) == (sign == 0);
        Ok(match high.iter().all(|&byte| byte == sign) {
            true if is_same_sign => PickleValue::Int(i64::from_le_bytes(wide)),
            _ => PickleValue::Long,
        })
    }

    fn text(&mut self, opcode: u8) -> Result<&'a str, FormatError> {
        let bytes = self.counted(opcode)?;
        str::from_utf8(bytes).map_err(|error| self.error("text in UTF-8", &error.to_string()))
    }

    /// Bytes behind their number.
    fn counted(&mut self, opcode: u8) -> Result<&'a [u8], FormatError> {
        let n_bytes = match opcode {
            0x8c | b'C' => u64::from(u8::from_le_bytes(self.array()?)),
            b'X' | b'B' => u64::from(u32::from_le_bytes(self.array()?)),
            _ => u64::from_le_bytes(self.array()?),
        };
        let bytes = self.take(n_bytes)?;
        // Text stays in the pickle, but those who read values may copy it.
        self.n_text_bytes = self.n_text_bytes.saturating_add(bytes.len());
        if self.n_text_bytes > TEXT_BYTES_MAX {
            let expected = format!("at most {TEXT_BYTES_MAX} bytes of text");
            return Err(self.error(&expected, "more"));
        }
        Ok(bytes)
    }

    fn name(&mut self, opcode: u8) -> Result<(), FormatError> {
        let name = match opcode {
            b'c' => PickleName(self.line()?, self.line()?),
            _ => {
                let parts = self.pop_many(2)?;
                let [
                    Some(PickleValue::Text(module)),
                    Some(PickleValue::Text(name)),
                ] = [0, 1].map(|i| self.value(parts.get(i).copied()))
                else {
                    return Err(self.error("a module and a name", "other values"));
                };
                PickleName(module, name)
            }
        };
        // Names are refused where they come, even if nothing is done with them.
        if !(self.is_known)(name) {
            let found = format!("`{}.{}`", excerpt(name.0), excerpt(name.1));
            return Err(self.error("a class or function of plain tensors", &found));
        }
        self.push(PickleValue::Name(name))
    }

    /// A part of a name, up to the line's end.
    fn line(&mut self) -> Result<&'a str, FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let start = rest.get(..NAME_BYTES_MAX).unwrap_or(rest);
        let Some(n) = start.iter().position(|&byte| byte == b'\n') else {
            let expected = format!("a line of at most {NAME_BYTES_MAX} bytes");
            return Err(self.error(&expected, "none"));
        };
        self.at += n + 1;
        let line = start.get(..n).unwrap_or_default();
        str::from_utf8(line).map_err(|error| self.error("a name in UTF-8", &error.to_string()))
    }

    fn call(&mut self) -> Result<(), FormatError> {
        let (args, callee) = (self.pop()?, self.pop()?);
        let Some(PickleValue::Tuple(items)) = self.value(Some(args)) else {
            return Err(self.error("a tuple of arguments", "another value"));
        };
        // The only argument that is inspected, as that of a dictionary.
        let first = items.first().copied();
        let Some(&PickleValue::Name(name)) = self.value(Some(callee)) else {
            return Err(self.error("a name that is called", "another value"));
        };
        let called = if name == ORDERED_DICT {
            PickleValue::Dict(self.pairs(first)?)
        } else {
            PickleValue::Call(PickleCall {
                name: Box::new(name),
                args,
                at: u32::try_from(self.start).unwrap_or(u32::MAX),
            })
        };
        self.push(called)
    }

    /// Keys and values from a list of pairs; no list is an empty one.
    fn pairs(&mut self, list: Option<ValueId>) -> Result<Vec<(ValueId, ValueId)>, FormatError> {
        let pairs: Option<Vec<(ValueId, ValueId)>> = match self.value(list) {
            None => Some(Vec::new()),
            Some(PickleValue::List(items)) => {
                // Copies cost as much as values on the stack: a list can be copied again and again.
                let n = items.len();
                self.spend(n)?;
                let Some(PickleValue::List(items)) = self.value(list) else {
                    return Ok(Vec::new());
                };
                let pairs = items.iter().map(|&item| match self.value(Some(item)) {
                    Some(PickleValue::Tuple(pair) | PickleValue::List(pair)) => match pair[..] {
                        [key, value] => Some((key, value)),
                        _ => None,
                    },
                    _ => None,
                });
                pairs.collect()
            }
            Some(_) => None,
        };
        pairs.ok_or_else(|| self.error("a list of pairs", "another value"))
    }

    /// Takes the attributes of a dictionary, which are not part of its content.
    fn build(&mut self) -> Result<(), FormatError> {
        // State dictionaries have the versions of their modules there.
        self.pop()?;
        let top = self.top()?;
        let name = match self.value(Some(top)) {
            Some(PickleValue::Dict(_)) => return Ok(()),
            Some(PickleValue::Call(call)) => {
                format!("`{}.{}`", excerpt(call.name.0), excerpt(call.name.1))
            }
            _ => "another value".to_owned(),
        };
        Err(self.error("attributes of a dictionary", &format!("those of {name}")))
    }

    fn add_items(&mut self, opcode: u8) -> Result<(), FormatError> {
        let items = match opcode {
            b'a' => self.pop_many(1)?,
            b's' => self.pop_many(2)?,
            _ => self.pop_to_mark()?,
        };
        let top = self.top()?;
        match (opcode, self.values.get_mut(top.0 as usize)) {
            (b'a' | b'e', Some(PickleValue::List(list))) => list.extend(items),
            (0x90, Some(PickleValue::Set(set))) => set.extend(items),
            // A key without a value is damage, and no key of nothing.
            (b's' | b'u', Some(PickleValue::Dict(dict))) if items.len().is_multiple_of(2) => {
                let (pairs, _) = items.as_chunks::<2>();
                dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
            }
            _ => return Err(self.error("a list, set or dictionary to add to", "another value")),
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), FormatError> {
        if self.marks.len() == N_MARKS_MAX {
            let expected = format!("at most {N_MARKS_MAX} values inside one another");
            return Err(self.error(&expected, "more"));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn remember(&mut self, opcode: u8) -> Result<(), FormatError> {
        let place = match opcode {
            b'q' => u32::from(u8::from_le_bytes(self.array()?)),
            b'r' => u32::from_le_bytes(self.array()?),
            // Without a number it is the next place, as Python counts them.
            _ => u32::try_from(self.memo.len()).unwrap_or(u32::MAX),
        };
        let top = self.top()?;
        self.memo.insert(place, top);
        if self.memo.len() > N_MEMO_MAX {
            let expected = format!("at most {N_MEMO_MAX} values that come again");
            return Err(self.error(&expected, "more"));
        }
        Ok(())
    }

    fn recall(&mut self, opcode: u8) -> Result<(), FormatError> {
        let place = match opcode {
            b'h' => u32::from(u8::from_le_bytes(self.array()?)),
            _ => u32::from_le_bytes(self.array()?),
        };
        match self.memo.get(&place) {
            Some(&id) => self.push_again(id),
            None => Err(self.error("a value that came before", &place.to_string())),
        }
    }

    /// Puts a value that is there already on the stack.
    fn push_again(&mut self, id: ValueId) -> Result<(), FormatError> {
        self.spend(1)?;
        self.stack.push(id);
        Ok(())
    }

    fn push(&mut self, value: PickleValue<'a>) -> Result<(), FormatError> {
        self.spend(1)?;
        let id = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(value);
        self.stack.push(id);
        Ok(())
    }

    /// Counts values, those that come again as well: what holds them takes memory for each.
    fn spend(&mut self, n: usize) -> Result<(), FormatError> {
        self.n_pushed = self.n_pushed.saturating_add(n);
        if self.n_pushed > N_VALUES_MAX {
            let expected = format!("at most {N_VALUES_MAX} values");
            return Err(self.error(&expected, "more"));
        }
        Ok(())
    }

    fn value(&self, id: Option<ValueId>) -> Option<&PickleValue<'a>> {
        self.values.get(id?.0 as usize)
    }

    /// Where the values begin that are not behind a mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<ValueId, FormatError> {
        // Values in front of a mark belong to what is put together later.
        let values = self.stack.get(self.floor()..).unwrap_or_default();
        let top = values.last().copied();
        top.ok_or_else(|| self.error("a value on the stack", "none"))
    }

    fn pop(&mut self) -> Result<ValueId, FormatError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_many(&mut self, n: usize) -> Result<Vec<ValueId>, FormatError> {
        let n_there = self.stack.len() - self.floor().min(self.stack.len());
        if n_there < n {
            let expected = format!("{n} values on the stack");
            return Err(self.error(&expected, &n_there.to_string()));
        }
        let start = self.stack.len() - n;
        Ok(self.stack.drain(start..).collect())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<ValueId>, FormatError> {
        let Some(height) = self.marks.pop() else {
            return Err(self.error("a mark on the stack", "none"));
        };
        // A part that is split off could keep the room of the whole stack.
        Ok(self.stack.drain(height.min(self.stack.len())..).collect())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let bytes = self.take(N as u64)?;
        let array = bytes.first_chunk().copied();
        array.ok_or_else(|| self.error("an operand", "none"))
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8], FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(n).ok().and_then(|n| rest.get(..n));
        let Some(taken) = taken else {
            let expected = format!("{n} bytes of the pickle");
            return Err(self.error(&expected, &rest.len().to_string()));
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn error(&self, expected: &str, found: &str) -> FormatError {
        FormatError::new(self.start as u64, expected, found)
    }
}
