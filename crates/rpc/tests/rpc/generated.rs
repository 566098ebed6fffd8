//! Compares the generated code of workers in other languages with the contracts.

use std::fs;
use std::path::{Path, PathBuf};

use protox::prost::Message as _;
use protox::prost_reflect::prost_types::FileDescriptorProto;

const CONTRACTS: [&str; 4] = [
    "shoal/types/v1/rpc",
    "shoal/types/v1/link",
    "shoal/types/v1/call",
    "shoal/worker/v1/worker",
];

#[test]
fn the_code_in_python_is_that_of_the_contracts() {
    for contract in CONTRACTS {
        let file = workers().join(format!("python/src/shoal_worker/_proto/{contract}_pb2.py"));
        let text = read(&file);
        let begin = "AddSerializedFile(b'";
        let (_, literal) = text.split_once(begin).unwrap();
        let (literal, _) = literal.split_once("')\n").unwrap();
        compare(contract, &unescaped(literal), "workers/python/generate.py");
    }
}

#[test]
fn the_code_in_go_is_that_of_the_contracts() {
    for contract in CONTRACTS {
        let package = contract.strip_prefix("shoal/").unwrap();
        let text = read(&workers().join(format!("go/shoalpb/{package}.pb.go")));
        let (_, lines) = text.split_once("_rawDesc = \"\" +\n").unwrap();
        let (lines, _) = lines.split_once("\n\n").unwrap();
        let parts = lines.lines().map(|line| {
            let line = line.trim().trim_end_matches(" +");
            unescaped(line.strip_prefix('"').unwrap().strip_suffix('"').unwrap())
        });
        let bytes: Vec<u8> = parts.flatten().collect();
        compare(contract, &bytes, "workers/go/generate.sh");
    }
}

#[track_caller]
fn compare(contract: &str, generated: &[u8], generator: &str) {
    let name = format!("{contract}.proto");
    let compiled = protox::compile(
        [&name],
        [Path::new(env!("CARGO_MANIFEST_DIR")).join("proto")],
    );
    let mut files = compiled.unwrap().file.into_iter();
    let compiled = files
        .find(|file| file.name.as_ref() == Some(&name))
        .unwrap();
    let generated = FileDescriptorProto::decode(generated).unwrap();
    let is_current = normalized(compiled) == normalized(generated);
    assert!(
        is_current,
        "the code of {name} is out of date: run {generator}"
    );
}

/// Removes what only some compilers add: comments, and the fields' JSON names, which derive from the field names.
fn normalized(mut file: FileDescriptorProto) -> FileDescriptorProto {
    file.source_code_info = None;
    let mut messages: Vec<_> = file.message_type.iter_mut().collect();
    while let Some(message) = messages.pop() {
        for field in &mut message.field {
            field.json_name = None;
        }
        messages.extend(&mut message.nested_type);
    }
    file
}

fn unescaped(literal: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = literal.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            bytes.extend(next.to_string().bytes());
            continue;
        }
        let escape = rest.next().unwrap();
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            _ => 0,
        };
        let digits: String = rest.by_ref().take(digits).collect();
        match escape {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            '\\' | '"' | '\'' => bytes.push(escape as u8),
            'x' => bytes.push(u8::from_str_radix(&digits, 16).unwrap()),
            'u' => {
                let code = u32::from_str_radix(&digits, 16).unwrap();
                bytes.extend(char::from_u32(code).unwrap().to_string().bytes());
            }
            other => panic!("unknown escape \\{other}"),
        }
    }
    bytes
}

fn workers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
