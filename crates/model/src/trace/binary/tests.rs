use proptest::prelude::*;

use super::super::{Ending, Reader, TraceError, parse};
use super::*;
use crate::{Event, Symbols};

const TEXT: &str = "\
T0|alloc(0x1000:4096)|a.c:1
T0|fork(T1)|a.c:2
T1|start()|a.c:9
T1|w(0x1000:4)|a.c:10:3
T1|w(0x1004:4)|a.c:10:3
T0|r(0x1003:3)|a.c:4
T0|au(x,acqrel)|a.c:5
T0|fence(acquire)|a.c:5
T0|racq(l)|a.c:6
T0|rrel(l)|a.c:7
T0|arrive(b,3)|a.c:7
T0|leave(b,3)|a.c:7
T1|post(s)|a.c:11
T1|notifyall(c)|a.c:11
T1|wake(c)|a.c:11
T1|wait(s)|a.c:11
T1|begin(det:sort)|label
T1|end(det:sort)|label
T1|begin(task:one)|a.c:20
T1|begin(star:try)|a.c:20
T1|begin(commutes:add)|a.c:20
T1|end(commutes:add)|a.c:20
T1|begin(lazy:table)|a.c:20
T1|end(lazy:table)|a.c:20
T1|begin(stmt:a.c:4-7 work)|a.c:20
T1|end(stmt:a.c:4-7 work)|a.c:20
T1|get(a,x)|a.c:21
T1|let(b,a)|a.c:22
T1|if(b)|a.c:23
T1|set(x,b)|a.c:24
T1|end(star:try)|a.c:25
T1|end(task:one)|a.c:25
T1|focus(x)|a.c:26
T1|stop()|a.c:12
T0|join(T1)|a.c:8
T0|free(0x1000:4096)|a.c:8
";

fn encode(events: &[Event], symbols: &Symbols) -> Vec<u8> {
    let mut writer = BinaryWriter::new(Vec::new()).unwrap();
    events.iter().for_each(|e| writer.write(e, symbols).unwrap());
    writer.finish(symbols).unwrap()
}

fn decode(bytes: &[u8]) -> Result<(Vec<Event>, Symbols, Ending), TraceError> {
    let mut reader = Reader::new(bytes)?;
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    loop {
        reader.read(&mut batch)?;
        if batch.is_empty() {
            return Ok((all, reader.symbols().clone(), reader.ending()));
        }
        all.append(&mut batch);
    }
}

/// Many copies of a short loop, enough for several blocks.
fn long_trace() -> (Vec<Event>, Symbols) {
    let (_, symbols) = parse(TEXT).unwrap();
    let (body, _) = parse("T0|acq(l)|1\nT0|w(0x2000:8)|2\nT0|rel(l)|3\n").unwrap();
    let events = body.iter().copied().cycle().take(3 * BLOCK_EVENTS).collect();
    (events, symbols)
}

#[test]
fn every_operation_and_name_survives() {
    let (events, symbols) = parse(TEXT).unwrap();
    let (back, names, ending) = decode(&encode(&events, &symbols)).unwrap();
    assert_eq!(back, events);
    assert_eq!(ending, Ending::Whole);
    assert_eq!(names.threads.entries(), symbols.threads.entries());
    assert_eq!(names.sites.entries(), symbols.sites.entries());
    assert_eq!(names.locals.entries(), symbols.locals.entries());
    assert_eq!(names.regions.entries(), symbols.regions.entries());
    assert!(names.variables.iter().eq(symbols.variables.iter()));
}

#[test]
fn ids_without_a_name_get_an_empty_one() {
    let (events, _) = parse(TEXT).unwrap();
    let (back, names, _) = decode(&encode(&events, &Symbols::default())).unwrap();
    assert_eq!(back, events);
    assert_eq!(names.thread(events[0].thread), "Thread0");
}

#[test]
fn a_cut_off_trace_is_read_up_to_its_last_whole_block() {
    let (events, symbols) = long_trace();
    let bytes = encode(&events, &symbols);
    let second = FILE_HEADER + BlockHeader::SIZE + stored_at(&bytes, FILE_HEADER);
    let third = second + BlockHeader::SIZE + stored_at(&bytes, second);
    for (cut, blocks, from) in [
        (FILE_HEADER, 0, FILE_HEADER),
        (second - 1, 0, FILE_HEADER),
        (second, 1, second),
        (second + 3, 1, second),
        (third - 1, 1, second),
        (third + BlockHeader::SIZE + 5, 2, third),
    ] {
        let (back, _, ending) = decode(&bytes[..cut]).unwrap();
        assert_eq!(back.len(), blocks * BLOCK_EVENTS, "cut at {cut}");
        assert_eq!(back, events[..back.len()]);
        assert_eq!(ending, Ending::CutOff { offset: from as u64 }, "cut at {cut}");
    }
}

fn stored_at(bytes: &[u8], block: usize) -> usize {
    u32::from_le_bytes(bytes[block + 4..block + 8].try_into().unwrap()) as usize
}

#[test]
fn every_damaged_byte_is_noticed_and_the_block_named() {
    let (events, symbols) = parse(TEXT).unwrap();
    let bytes = encode(&events, &symbols);
    for i in 0..bytes.len() {
        if (5..FILE_HEADER).contains(&i) {
            continue; // reserved bytes
        }
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x10;
        let error = match decode(&damaged) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("damage at byte {i} went unnoticed"),
        };
        if i >= FILE_HEADER {
            assert!(error.starts_with("offset "), "byte {i}: {error}");
        }
    }
}

#[test]
fn traces_of_older_versions_are_read() {
    for (binary, text) in [
        (&include_bytes!("version1.svt")[..], include_str!("version1.std")),
        (&include_bytes!("version2.svt")[..], include_str!("version2.std")),
    ] {
        let (back, names, ending) = decode(binary).unwrap();
        let (events, symbols) = parse(text).unwrap();
        assert_eq!((back, ending), (events, Ending::Whole));
        assert_eq!(names.sites.entries(), symbols.sites.entries());
    }
}

#[test]
fn updates_come_back() {
    let text: String = crate::Operator::ALL
        .iter()
        .map(|(_, name)| format!("a|get(l,x)|1\na|set(x,l)|1\na|updates({name})|1\n"))
        .collect();
    let (events, symbols) = parse(&text).unwrap();
    let (back, _, ending) = decode(&encode(&events, &symbols)).unwrap();
    assert_eq!((back, ending), (events, Ending::Whole));
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let mut bytes = encode(&[], &Symbols::default());
    bytes[4] = 7;
    let error = decode(&bytes).unwrap_err();
    assert!(matches!(error, TraceError::Version { found: 7, supported: VERSION }));
    assert!(error.to_string().contains("version 7"));
}

#[test]
fn nothing_may_follow_the_end() {
    let mut bytes = encode(&[], &Symbols::default());
    let end = bytes.len();
    bytes.push(0);
    let error = decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, format!("offset {end}: something follows the end of the trace"));
}

#[test]
fn an_event_that_cannot_come_next_is_named_by_number_and_block() {
    let (events, symbols) = parse("T0|acq(l)|1\nT0|rel(l)|2\n").unwrap();
    let error = decode(&encode(&[events[0], events[1], events[1]], &symbols)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "event 3 (block at offset 8): thread T0 releases l, which it does not hold"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_accesses_survive(accesses in proptest::collection::vec(
        (0u32..4, 0u32..6, any::<u32>(), prop_oneof![Just(1u32), Just(2), Just(4), Just(8), 0..=crate::wellformed::MAX_ACCESS], any::<bool>()), 0..80)
    ) {
        use crate::{Access, Op, SiteId, ThreadId};
        let events: Vec<Event> = accesses.iter().map(|&(thread, site, addr, len, write)| {
            let access = Access { addr: u64::from(addr) << 20 | u64::from(addr % 64), len };
            let op = if write { Op::Write(access) } else { Op::Read(access) };
            Event { thread: ThreadId(thread), site: SiteId(site), op }
        }).collect();
        let (back, _, ending) = decode(&encode(&events, &Symbols::default())).unwrap();
        prop_assert_eq!(back, events);
        prop_assert_eq!(ending, Ending::Whole);
    }

    #[test]
    fn garbage_after_the_magic_is_an_error_or_cut_off_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut file = encode(&[], &Symbols::default())[..FILE_HEADER].to_vec();
        file.extend(bytes);
        if let Ok((events, _, ending)) = decode(&file) {
            prop_assert!(events.is_empty() && ending != Ending::Whole);
        }
    }

    /// The checksums do not protect against a file that was made to be wrong.
    #[test]
    fn a_block_with_senseless_contents_is_an_error_and_never_a_panic(raw in proptest::collection::vec(any::<u8>(), 0..120), events in 0u32..20) {
        let file = file_of_raw_block(&raw, events);
        let _ = decode(&file);
    }
}
