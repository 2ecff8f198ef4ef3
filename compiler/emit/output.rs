//! Writes an output file so that it is either the whole new one or what was there before.
//!
//! The bytes go to a temporary file in the target's folder, which then takes the target's name. That also works while
//! the target is running as a program, and leaves other links to the old file alone. A target that is no regular file
//! (`/dev/null`, a pipe, a terminal) is written directly, and a symbolic link is followed, as other compilers do.
//!
//! This is the only door to the `tempfile` crate.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The mode of executables, less what the process's umask takes away.
pub const EXECUTABLE: u32 = 0o777;

/// The mode of other files, less the umask.
pub const PLAIN: u32 = 0o666;

/// Writes `bytes` to `path`. The file gets `mode` less the umask.
///
/// # Errors
/// Whatever keeps the file from being written; what stood at `path` is then unchanged (except for a device or a pipe).
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // A link stays a link: what it points to is replaced.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => dangling_target(path)?,
        Err(error) => return Err(error),
    };
    if let Ok(metadata) = fs::metadata(&target) {
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let kind = metadata.file_type();
        if kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket() {
            return File::options().write(true).open(&target)?.write_all(bytes);
        }
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut temporary = match TemporaryFile::new(folder, mode) {
        Ok(temporary) => temporary,
        // Where no file can be made, one that is there may still be written.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && target.exists() => {
            return File::options().write(true).truncate(true).open(&target)?.write_all(bytes);
        }
        Err(error) => return Err(error),
    };
    temporary.file.write_all(bytes)?;
    temporary.rename(&target)
}

/// A file that is removed when this is dropped, unless it has been renamed.
struct TemporaryFile {
    file: File,
    path: PathBuf,
}

impl TemporaryFile {
    /// Makes one in `folder`; the kernel takes the umask off `mode`.
    fn new(folder: &Path, mode: u32) -> io::Result<TemporaryFile> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".atlc-{}-{number}", std::process::id()));
            match File::options().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok(TemporaryFile { file, path }),
                // A process of this number was stopped before it could remove its file.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(self, target: &Path) -> io::Result<()> {
        // On success there is nothing left for `drop` to remove.
        fs::rename(&self.path, target)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Where a path leads that does not exist: itself, or the missing end of a chain of symbolic links.
fn dangling_target(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A folder that is removed when this is dropped.
pub struct TemporaryFolder(tempfile::TempDir);

impl TemporaryFolder {
    /// Makes one where temporary files belong (`TMPDIR`).
    ///
    /// # Errors
    /// Whatever keeps it from being made.
    pub fn new() -> io::Result<TemporaryFolder> {
        tempfile::Builder::new().prefix("atlc-").tempdir().map(TemporaryFolder)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn replaces_the_file_and_sets_its_mode() {
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path().join("out");
        write_atomically(&path, b"one", EXECUTABLE).unwrap();
        let old = fs::metadata(&path).unwrap();
        // What the umask leaves of an ordinary file's mode is what it leaves of ours.
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let umask = 0o666 & !fs::metadata(&plain).unwrap().permissions().mode();
        assert_eq!(old.permissions().mode() & 0o666, 0o666 & !umask);
        assert_ne!(old.permissions().mode() & 0o100, 0);
        write_atomically(&path, b"two", PLAIN).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_ne!(fs::metadata(&path).unwrap().ino(), old.ino());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666 & !umask);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "temporary files are left");
    }

    #[test]
    fn replaces_a_running_program() {
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path().join("sleep");
        fs::copy("/bin/sleep", &path).unwrap();
        let mut running = std::process::Command::new(&path).arg("30").spawn().unwrap();
        let result = write_atomically(&path, b"new", EXECUTABLE);
        running.kill().unwrap();
        running.wait().unwrap();
        result.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn leaves_what_was_there_on_failure() {
        let folder = TemporaryFolder::new().unwrap();
        let missing = folder.path().join("no/such/folder/out");
        let error = write_atomically(&missing, b"x", PLAIN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("atlc"), "{error} names the temporary file");
        assert_eq!(write_atomically(folder.path(), b"x", PLAIN).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "temporary files are left");
    }

    #[test]
    fn writes_devices_directly() {
        let before = fs::metadata("/dev/null").unwrap().ino();
        write_atomically(Path::new("/dev/null"), b"gone", EXECUTABLE).unwrap();
        assert_eq!(fs::metadata("/dev/null").unwrap().ino(), before);
        assert!(write_atomically(Path::new("/dev/full"), b"x", PLAIN).is_err());
    }

    #[test]
    fn follows_links() {
        let folder = TemporaryFolder::new().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &link).unwrap();
        write_atomically(&link, b"one", PLAIN).unwrap();
        write_atomically(&link, b"two", PLAIN).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
