use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    vec,
};

use crate::{
    chunker::{Chunker, WordTooLong},
    decoder::Decoder,
    failure::Failure,
    plain_count::PlainCount,
};

/// What one read takes at most.
const READ_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    fn name(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, Failure> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin())),
            Self::File(path) => {
                File::open(path).map(|file| Box::new(file) as Box<_>).map_err(|source| self.failure(source))
            }
        }
    }

    /// How many bytes it has, if that can be known; an error if it cannot be read.
    fn check(&self) -> Result<Option<u64>, Failure> {
        let Self::File(path) = self else { return Ok(None) };
        let metadata = fs::metadata(path).map_err(|source| self.failure(source))?;
        if metadata.is_dir() {
            return Err(Failure::InputIsDirectory(self.name()));
        }
        // Opening and closing a pipe would end its writer.
        if !metadata.is_file() {
            return Ok(None);
        }
        self.open().map(|_| Some(metadata.len()))
    }

    fn failure(&self, source: io::Error) -> Failure {
        Failure::Input { name: self.name(), source }
    }
}

/// The inputs to count, one after the other.
#[derive(Debug)]
pub(crate) struct Inputs {
    inputs: Vec<Input>,
    bytes: Option<u64>,
}

impl Inputs {
    /// The files `names`, where `-` is the standard input. All are checked before anything is read.
    pub(crate) fn named(names: &[PathBuf]) -> Result<Self, Failure> {
        let input = |name: &PathBuf| if name == Path::new("-") { Input::Stdin } else { Input::File(name.clone()) };
        let inputs = names.iter().map(input).collect::<Vec<_>>();
        if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
            return Err(Failure::StdinTwice);
        }
        let sizes = inputs.iter().map(Input::check).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { inputs, bytes: sizes.into_iter().sum() })
    }

    /// The Markdown files below `root`, leaving out what was built there.
    pub(crate) fn markdown_below(root: &Path) -> Result<Self, Failure> {
        let mut files = Vec::new();
        if !root.is_dir() || find_markdown(root, &mut files).is_err() || files.is_empty() {
            return Err(Failure::NoMarkdown(root.to_owned()));
        }
        files.sort();
        Self::named(&files)
    }

    /// How many bytes they have together, if all are regular files.
    pub(crate) const fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Reads them once, as chunks of about `chunk_bytes`; the same text goes to `plain_count`.
    pub(crate) fn chunks(self, chunk_bytes: usize, plain_count: Option<PlainCount>) -> Chunks {
        Chunks {
            waiting: self.inputs.into_iter(),
            input: Input::Stdin,
            reader: None,
            // Not much more than a chunk, so that cutting it off moves little.
            buffer: vec![0; chunk_bytes.saturating_mul(2).clamp(4 << 10, READ_BYTES)],
            text: String::new(),
            decoder: Decoder::default(),
            chunker: Chunker::new(chunk_bytes),
            plain_count,
            bytes_read: 0,
        }
    }
}

fn find_markdown(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_dir() && name != "target" && !name.as_encoded_bytes().starts_with(b".") {
            find_markdown(&entry.path(), found)?;
        } else if kind.is_file() && Path::new(&name).extension() == Some(OsStr::new("md")) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The text of the inputs, cut into chunks while it is read.
pub(crate) struct Chunks {
    waiting: vec::IntoIter<Input>,
    /// The input that was opened last.
    input: Input,
    reader: Option<Box<dyn Read + Send>>,
    buffer: Vec<u8>,
    text: String,
    decoder: Decoder,
    chunker: Chunker,
    plain_count: Option<PlainCount>,
    bytes_read: u64,
}

impl Chunks {
    /// The next chunk; `None` at the end.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<String>, Failure> {
        loop {
            match self.chunker.next_chunk() {
                Ok(None) => {}
                Ok(chunk) => return Ok(chunk),
                Err(WordTooLong) => return Err(Failure::WordTooLong { input: self.input.name() }),
            }
            if self.reader.is_none() {
                let Some(input) = self.waiting.next() else { return Ok(self.chunker.finish()) };
                self.reader = Some(input.open()?);
                self.input = input;
            }
            self.read()?;
        }
    }

    /// How many bytes were read so far.
    pub(crate) const fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The plain count of what was read.
    pub(crate) fn into_plain_count(self) -> Option<PlainCount> {
        self.plain_count
    }

    fn read(&mut self) -> Result<(), Failure> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        self.text.clear();
        match reader.read(&mut self.buffer) {
            Ok(0) => {
                self.decoder.finish(&mut self.text);
                // A word ends where its file does.
                self.text.push('\n');
                self.reader = None;
            }
            Ok(len) => {
                self.bytes_read += len as u64;
                self.decoder.push(self.buffer.get(..len).unwrap_or_default(), &mut self.text);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(self.input.failure(error)),
        }
        self.chunker.push(&self.text);
        if let Some(plain_count) = &mut self.plain_count {
            plain_count.push(&self.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::words::words;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn read(inputs: Inputs, chunk_bytes: usize) -> (Vec<String>, Chunks) {
        let mut chunks = inputs.chunks(chunk_bytes, Some(PlainCount::default()));
        let mut words_read = Vec::new();
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            words_read.extend(words(&chunk).map(String::from));
        }
        (words_read, chunks)
    }

    #[test]
    fn a_word_ends_where_its_file_does() {
        let (one, two) = (file(b"one tw\xC3"), file(b"\xA4o three"));
        let names = [one.path().to_owned(), two.path().to_owned()];
        let inputs = Inputs::named(&names).unwrap();
        assert_eq!(inputs.bytes(), Some(15));
        let (words, chunks) = read(inputs, 5);
        assert_eq!(words, ["one", "tw", "o", "three"]);
        assert_eq!(chunks.bytes_read(), 15);
        assert_eq!(chunks.into_plain_count().unwrap().finish().unwrap().0, 4);
    }

    #[test]
    fn a_word_that_is_too_long_names_its_file() {
        let (fine, long) = (file(b"fine"), file(&vec![b'x'; (256 << 10) + 1]));
        let names = [fine.path().to_owned(), long.path().to_owned(), fine.path().to_owned()];
        let mut chunks = Inputs::named(&names).unwrap().chunks(32 << 10, None);
        assert_eq!(chunks.next_chunk().unwrap().unwrap(), "fine\n");
        let failure = chunks.next_chunk().unwrap_err().to_string();
        assert!(failure.contains(&long.path().display().to_string()), "{failure}");
    }

    #[test]
    fn all_names_are_checked_first() {
        let (here, directory) = (file(b""), tempfile::tempdir().unwrap());
        let check = |path: &Path| Inputs::named(&[here.path().to_owned(), path.to_owned()]);
        assert!(matches!(check(&directory.path().join("gone")), Err(Failure::Input { .. })));
        assert!(matches!(check(directory.path()), Err(Failure::InputIsDirectory(_))));
        assert!(matches!(Inputs::named(&["-".into(), "-".into()]), Err(Failure::StdinTwice)));
        assert_eq!(Inputs::named(&[here.path().to_owned(), "-".into()]).unwrap().bytes(), None);
    }

    #[test]
    fn markdown_is_found_but_not_where_things_are_built() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(Inputs::markdown_below(root.path()), Err(Failure::NoMarkdown(_))));
        assert!(matches!(Inputs::markdown_below(&root.path().join("gone")), Err(Failure::NoMarkdown(_))));
        for (directory, name) in
            [("", "a.md"), ("docs/deep", "b.md"), ("target", "c.md"), (".git", "d.md"), ("", "e.rs")]
        {
            let directory = root.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(name), name).unwrap();
        }
        assert_eq!(read(Inputs::markdown_below(root.path()).unwrap(), 100).0, ["a", "md", "b", "md"]);
    }
}
