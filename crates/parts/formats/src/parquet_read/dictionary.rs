//! The dictionary of a column of strings, found in its page without copying the strings.

use bytes::Bytes;
use memchr::memmem;

use super::ReadError;

/// The strings of a dictionary page. A code is the index of a string.
#[derive(Debug, Clone)]
pub struct StringDictionary {
    /// The decompressed page, in which each string stands behind its length.
    page: Bytes,
    /// Where each string starts and ends in the page, without its length.
    spans: Vec<(u32, u32)>,
}

impl StringDictionary {
    /// Finds the strings of a PLAIN page of `len` byte arrays.
    ///
    /// # Errors
    /// A string leaves the page, or bytes are left behind the last string.
    pub fn new(page: Bytes, len: usize) -> Result<Self, ReadError> {
        let mut dictionary = Self {
            page: page.clone(),
            spans: Vec::new(),
        };
        dictionary.extend(page, len)?;
        Ok(dictionary)
    }

    /// Grows to another dictionary that begins with this one, so that codes of both mean the same.
    /// If this one begins with the other, nothing changes.
    ///
    /// Returns false, and changes nothing, if neither begins with the other.
    ///
    /// # Errors
    /// As [`StringDictionary::new`].
    pub fn grow(&mut self, page: &Bytes, len: usize) -> Result<bool, ReadError> {
        // Comparing the pages compares strings and lengths at once. It could only go wrong where
        // the shorter page ends within a string of the longer one, which the checks below refuse.
        let shared = self.page.len().min(page.len());
        if self.page[..shared] != page[..shared] {
            return Ok(false);
        }
        if page.len() > self.page.len() {
            self.extend(page.clone(), len)?;
        } else if !self.ends_at(shared, len) {
            return Err(ReadError::damaged(format!(
                "dictionary of {len} strings in {shared} bytes"
            )));
        }
        Ok(true)
    }

    /// Whether the first `len` strings take exactly the first `size` bytes.
    fn ends_at(&self, size: usize, len: usize) -> bool {
        match len.checked_sub(1) {
            None => size == 0,
            Some(last) => self
                .spans
                .get(last)
                .is_some_and(|&(_, end)| end as usize == size),
        }
    }

    fn extend(&mut self, page: Bytes, len: usize) -> Result<(), ReadError> {
        let mut spans = self.spans.clone();
        let mut at = spans.last().map_or(0, |&(_, end)| end as usize);
        // The header promises `len`, but each string takes four bytes for its length at least.
        spans.reserve(len.saturating_sub(spans.len()).min(page.len() / 4));
        while spans.len() < len {
            let start = at + 4;
            let size = page
                .get(at..start)
                .and_then(|size| size.try_into().ok())
                .map(|size| u32::from_le_bytes(size) as usize);
            let end = size.and_then(|size| start.checked_add(size));
            match end.filter(|end| *end <= page.len()) {
                Some(end) => spans.push((to_u32(start)?, to_u32(end)?)),
                None => {
                    return Err(ReadError::damaged(format!(
                        "dictionary string {} leaves the page of {} bytes",
                        spans.len(),
                        page.len()
                    )));
                }
            }
            at = end.unwrap_or(at);
        }
        if at != page.len() || spans.len() != len {
            return Err(ReadError::damaged(format!(
                "dictionary of {len} strings takes {at} of {} bytes",
                page.len()
            )));
        }
        self.page = page;
        self.spans = spans;
        Ok(())
    }

    /// The number of strings, which is one more than the highest code.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it has no strings.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The codes of strings with exactly these bytes. There is more than one if the writer has put
    /// a string in twice.
    pub fn find(&self, string: &[u8]) -> Vec<usize> {
        // A search through the page for the string behind its length looks at tens of bytes at
        // once. What it finds inside of another string does not begin where a string does.
        let Ok(len) = u32::try_from(string.len()) else {
            return Vec::new();
        };
        let stored = [&len.to_le_bytes(), string].concat();
        let finder = memmem::Finder::new(&stored);
        let mut codes = Vec::new();
        let mut from = 0;
        // Matches may overlap, and only one of them may be a string, so the search goes on one byte
        // behind each.
        while let Some(at) = self.page.get(from..).and_then(|page| finder.find(page)) {
            let start = (from + at) as u64 + 4;
            let code = self
                .spans
                .binary_search_by_key(&start, |span| span.0.into());
            codes.extend(code.ok());
            from += at + 1;
        }
        codes
    }

    /// The bytes of the string with `code`, or `None` if the dictionary has no such code.
    pub fn get(&self, code: usize) -> Option<&[u8]> {
        let &(start, end) = self.spans.get(code)?;
        self.page.get(start as usize..end as usize)
    }

    /// The string of a code, which keeps the whole page in memory.
    pub(super) fn slice(&self, code: usize) -> Option<Bytes> {
        let &(start, end) = self.spans.get(code)?;
        Some(self.page.slice(start as usize..end as usize))
    }
}

fn to_u32(offset: usize) -> Result<u32, ReadError> {
    u32::try_from(offset)
        .map_err(|_| ReadError::damaged(format!("dictionary offset {offset} is above 4 GiB")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(strings: &[&str]) -> Bytes {
        let mut page = Vec::new();
        for string in strings {
            page.extend((string.len() as u32).to_le_bytes());
            page.extend(string.as_bytes());
        }
        Bytes::from(page)
    }

    #[test]
    fn grows_only_by_dictionaries_that_begin_alike() {
        let mut dictionary = StringDictionary::new(page(&["K1ABC", ""]), 2).unwrap();
        assert_eq!(dictionary.get(1), Some(&b""[..]));
        assert!(dictionary.grow(&page(&["K1ABC", "", "G8JNJ"]), 3).unwrap());
        assert_eq!(dictionary.get(2), Some(&b"G8JNJ"[..]));
        assert!(dictionary.grow(&page(&["K1ABC"]), 1).unwrap());
        assert_eq!(dictionary.len(), 3);
        assert!(!dictionary.grow(&page(&["K1ABD"]), 1).unwrap());
        assert!(dictionary.grow(&page(&["K1ABC"]), 2).is_err());
        assert_eq!(dictionary.get(3), None);
    }

    #[test]
    fn strings_are_found_where_they_begin() {
        let inside = "x\u{5}\0\0\0K1ABC";
        let strings = ["K1ABCD", inside, "K1ABC", "", "K1ABC", "K1AB"];
        let dictionary = StringDictionary::new(page(&strings), strings.len()).unwrap();
        assert_eq!(dictionary.find(b"K1ABC"), [2, 4]);
        assert_eq!(dictionary.find(inside.as_bytes()), [1]);
        assert_eq!(dictionary.find(b""), [3]);
        assert_eq!(dictionary.find(b"K1"), [0; 0]);
        let twice = StringDictionary::new(page(&["aa"; 9]), 9).unwrap();
        assert_eq!(twice.find(b"aa"), (0..9).collect::<Vec<_>>());
    }

    /// A string may look like the end of a length and the string looked for.
    #[test]
    fn every_string_is_found_by_its_code() {
        let strings: Vec<String> = (0..2000u32)
            .map(|i| char::from(i as u8 % 3).to_string().repeat(i as usize % 11))
            .collect();
        let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
        let dictionary = StringDictionary::new(page(&strings), strings.len()).unwrap();
        for string in &strings[..33] {
            let codes = (0..strings.len()).filter(|code| strings[*code] == *string);
            assert_eq!(
                dictionary.find(string.as_bytes()),
                codes.collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn damage_is_named() {
        let mut cut = page(&["K1ABC"]).to_vec();
        cut.pop();
        let error = StringDictionary::new(Bytes::from(cut), 1).unwrap_err();
        assert!(
            error.to_string().contains("string 0 leaves the page"),
            "{error}"
        );
        let error = StringDictionary::new(page(&["A", "B"]), 1).unwrap_err();
        assert!(error.to_string().contains("takes 5 of 10 bytes"), "{error}");
        assert!(StringDictionary::new(page(&[]), 1 << 40).is_err());
    }
}
