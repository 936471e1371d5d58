//! The program that the kernel asks, on machines with control groups of version 2, whether a process may open a device.
//!
//! It is a few instructions for each hidden device, loaded and attached by the system call itself: there is no compiler and no
//! library behind it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use super::devices::Device;

const PROG_LOAD: libc::c_long = 5;
const PROG_ATTACH: libc::c_long = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// Programs of the groups above stay in force.
const ALLOW_MULTI: u32 = 2;
/// The kind of device, in the lower half of the first word that the program sees.
const CHARACTER_DEVICE: i32 = 2;

/// An instruction of the kernel's machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// The register that is written in the lower half, the one that is read in the upper half.
    registers: u8,
    offset: i16,
    value: i32,
}

/// What the system call takes to load a program; the rest of its union is zero.
#[repr(C)]
struct Load {
    kind: u32,
    n_instructions: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// What it takes to attach one.
#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Hides devices from the processes of a control group, as long as the group is there.
pub(super) fn hide(group: &Path, hidden: &[Device]) -> io::Result<()> {
    let folder = File::open(group)?;
    let program = load(&program(hidden))?;
    let attach = Attach {
        target: folder.as_raw_fd().unsigned_abs(),
        program: program.as_raw_fd().unsigned_abs(),
        kind: ATTACH_CGROUP_DEVICE,
        flags: ALLOW_MULTI,
    };
    call(PROG_ATTACH, &attach).map(drop)
}

/// Loads a program; the kernel keeps it as long as this or a group refers to it.
#[expect(unsafe_code, reason = "the system call returns a number")]
fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let load = Load {
        kind: PROG_TYPE_CGROUP_DEVICE,
        n_instructions: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    let number = call(PROG_LOAD, &load)?;
    // SAFETY: the kernel has just made this file, and nothing else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[expect(unsafe_code, reason = "the system call has no safe form")]
fn call<T>(command: libc::c_long, argument: &T) -> io::Result<i32> {
    let pointer: *const T = argument;
    // SAFETY: the argument has the layout that the command takes, is as long as is said, and what it points to lives longer
    // than the call, which keeps none of it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    match i32::try_from(result) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns 0 for the hidden devices, 1 for everything else.
fn program(hidden: &[Device]) -> Vec<Instruction> {
    // Register 1 points to what is asked: kind and access, major, minor, a word each.
    let (result, asked, kind, major, minor) = (0, 1, 2, 3, 4);
    let load = |to: u8, offset| Instruction { code: 0x61, registers: to | asked << 4, offset, value: 0 };
    let unless = |register, value, skip| Instruction { code: 0x55, registers: register, offset: skip, value };
    let answer = |value| {
        let set = Instruction { code: 0xb7, registers: result, offset: 0, value };
        [set, Instruction { code: 0x95, registers: 0, offset: 0, value: 0 }]
    };
    let mut program = vec![
        load(kind, 0),
        // Only the lower half says what kind it is.
        Instruction { code: 0x57, registers: kind, offset: 0, value: 0xffff },
        load(major, 4),
        load(minor, 8),
    ];
    for device in hidden {
        program.push(unless(kind, CHARACTER_DEVICE, 4));
        program.push(unless(major, device.major.cast_signed(), 3));
        program.push(unless(minor, device.minor.cast_signed(), 2));
        program.extend(answer(0));
    }
    program.extend(answer(1));
    program
}
