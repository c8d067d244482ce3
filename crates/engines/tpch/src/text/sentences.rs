//! Writes sentences. It picks a rule and then the words for it, each by one draw.
//!
//! Draws are made a few thousand at a time. A word takes 32 bytes with its space behind it, so that
//! writing one is a wide copy of known size and a step by its true length. Which words a phrase has
//! is drawn, so the processor cannot guess it: a word that a phrase leaves out is written too,
//! without letters, and costs less than a wrong guess.

use super::grammar::{
    ADJECTIVES, ADVERBS, AUXILIARIES, NOUN_PHRASES, NOUNS, PREPOSITIONS, SENTENCES, TERMINATORS,
    VERB_PHRASES, VERBS,
};
use crate::draws::{Work, states, vectorised};
use crate::random::map;

/// A word and what follows it, with the length of both in the last byte.
type Word = [u8; WORD_BYTES];
const WORD_BYTES: usize = 32;

/// Room for a sentence. None is longer than 256 bytes, for which dbgen reserves as much, and the
/// last word is copied as a whole.
const SENTENCE_BYTES: usize = 256 + WORD_BYTES;
/// The most draws of a sentence, which has five phrases of at most five, a rule and an end.
const SENTENCE_DRAWS: usize = 32;
const BATCH: usize = 4096;

/// A weighted choice, which has as many equal entries for a word as its weight says.
struct Choice {
    entries: [u8; CHOICE_MAX],
    total: u32,
}
const CHOICE_MAX: usize = 512;

/// How many words there are. Adjectives occur twice, the second time with the comma that follows
/// them in some noun phrases.
const WORD_COUNT: usize = NOUNS.len()
    + VERBS.len()
    + ADVERBS.len()
    + 2 * ADJECTIVES.len()
    + PREPOSITIONS.len()
    + AUXILIARIES.len()
    + TERMINATORS.len();
/// The entry without letters, behind all words.
const NO_WORD: u8 = 255;
const _: () = assert!(WORD_COUNT <= NO_WORD as usize);

const VERB_FROM: usize = NOUNS.len();
const ADVERB_FROM: usize = VERB_FROM + VERBS.len();
const ADJECTIVE_FROM: usize = ADVERB_FROM + ADVERBS.len();
const LISTED_FROM: usize = ADJECTIVE_FROM + ADJECTIVES.len();
const PREPOSITION_FROM: usize = LISTED_FROM + ADJECTIVES.len();
const AUXILIARY_FROM: usize = PREPOSITION_FROM + PREPOSITIONS.len();
const TERMINATOR_FROM: usize = AUXILIARY_FROM + AUXILIARIES.len();

static WORDS: [Word; 256] = words();

static NOUN: Choice = choice(&NOUNS, 0);
static VERB: Choice = choice(&VERBS, VERB_FROM);
static ADVERB: Choice = choice(&ADVERBS, ADVERB_FROM);
static ADJECTIVE: Choice = choice(&ADJECTIVES, ADJECTIVE_FROM);
static LISTED_ADJECTIVE: Choice = choice(&ADJECTIVES, LISTED_FROM);
static PREPOSITION: Choice = choice(&PREPOSITIONS, PREPOSITION_FROM);
static AUXILIARY: Choice = choice(&AUXILIARIES, AUXILIARY_FROM);
static TERMINATOR: Choice = choice(&TERMINATORS, TERMINATOR_FROM);
static SENTENCE: Choice = choice(&SENTENCES, 0);
static NOUN_PHRASE: Choice = choice(&NOUN_PHRASES, 0);
static VERB_PHRASE: Choice = choice(&VERB_PHRASES, 0);
static NO_CHOICE: Choice = Choice {
    entries: [NO_WORD; CHOICE_MAX],
    total: 1,
};

/// The first and the second word before the noun, by the rule of the noun phrase, in the order of
/// [`NOUN_PHRASES`].
static FIRST: [&Choice; 4] = [&NO_CHOICE, &ADJECTIVE, &LISTED_ADJECTIVE, &ADVERB];
static SECOND: [&Choice; 4] = [&NO_CHOICE, &NO_CHOICE, &ADJECTIVE, &ADJECTIVE];
/// What stands behind the verb, by the rule of the verb phrase, in the order of [`VERB_PHRASES`].
static AFTER_VERB: [&Choice; 4] = [&NO_CHOICE, &NO_CHOICE, &ADVERB, &ADVERB];

const fn words() -> [Word; 256] {
    let mut words = [[0; WORD_BYTES]; 256];
    add(&mut words, 0, &NOUNS, " ");
    add(&mut words, VERB_FROM, &VERBS, " ");
    add(&mut words, ADVERB_FROM, &ADVERBS, " ");
    add(&mut words, ADJECTIVE_FROM, &ADJECTIVES, " ");
    add(&mut words, LISTED_FROM, &ADJECTIVES, ", ");
    add(&mut words, PREPOSITION_FROM, &PREPOSITIONS, " the ");
    add(&mut words, AUXILIARY_FROM, &AUXILIARIES, " ");
    add(&mut words, TERMINATOR_FROM, &TERMINATORS, " ");
    words
}

const fn add(words: &mut [Word; 256], from: usize, list: &[(&str, u32)], tail: &str) {
    let mut nth = 0;
    while nth < list.len() {
        let word = list[nth].0.as_bytes();
        let entry = &mut words[from + nth];
        let (head, rest) = entry.split_at_mut(word.len());
        head.copy_from_slice(word);
        rest.split_at_mut(tail.len())
            .0
            .copy_from_slice(tail.as_bytes());
        entry[WORD_BYTES - 1] = (word.len() + tail.len()) as u8;
        nth += 1;
    }
}

const fn choice(list: &[(&str, u32)], from: usize) -> Choice {
    let mut entries = [0; CHOICE_MAX];
    let (mut total, mut nth) = (0, 0);
    while nth < list.len() {
        let mut left = list[nth].1;
        while left > 0 {
            entries[total] = (from + nth) as u8;
            total += 1;
            left -= 1;
        }
        nth += 1;
    }
    Choice {
        entries,
        total: total as u32,
    }
}

/// Where the writing of a piece ended.
pub(super) struct End {
    /// The state of the stream after the piece's last sentence.
    pub(super) state: u32,
    /// How many bytes of that sentence did not fit the piece.
    pub(super) past_piece: usize,
}

/// Fills a piece with sentences, from the state that the stream has before the first of them.
pub(super) fn write(state: u32, piece: &mut [u8]) -> End {
    let mut end = End {
        state,
        past_piece: 0,
    };
    // A word is one store instead of two where the processor has vectors of 32 bytes.
    vectorised(Writing {
        piece,
        end: &mut end,
    });
    end
}

struct Writing<'a> {
    piece: &'a mut [u8],
    /// Where the piece begins, and then where it ends.
    end: &'a mut End,
}

impl Work for Writing<'_> {
    #[inline(always)]
    fn work(self) {
        let Writing { piece, end } = self;
        let mut draws = Draws::after(end.state);
        let mut at = 0;
        while at + SENTENCE_BYTES <= piece.len() {
            at += draws.sentence(&mut piece[at..at + SENTENCE_BYTES]);
        }
        // Wide copies would write into the next piece, which another thread may be writing. So the
        // last sentences go through a buffer of their own.
        while at < piece.len() {
            let mut room = [0; SENTENCE_BYTES];
            let written = draws.sentence(&mut room);
            let fits = written.min(piece.len() - at);
            piece[at..at + fits].copy_from_slice(&room[..fits]);
            at += fits;
            end.past_piece = written - fits;
        }
        end.state = draws.last();
    }
}

/// The next draws of the stream. The first element is the state before them.
struct Draws {
    states: [u32; BATCH],
    next: usize,
}

impl Draws {
    fn after(state: u32) -> Draws {
        let mut draws = Draws {
            states: [0; BATCH],
            next: 1,
        };
        draws.states[0] = state;
        states(state, &mut draws.states[1..]);
        draws
    }

    /// The state of the draw that was taken last.
    fn last(&self) -> u32 {
        self.states[self.next - 1]
    }

    /// Writes a sentence to the front of `room`, and returns how long it is.
    #[inline(always)]
    fn sentence(&mut self, room: &mut [u8]) -> usize {
        // There must be enough draws for a sentence, so that it need not look. The stream goes on
        // behind the last draw that was used. Those that were made and not used are made once more.
        if self.next + SENTENCE_DRAWS > BATCH {
            *self = Draws::after(self.last());
        }
        let mut pen = Pen {
            states: &self.states,
            next: self.next,
            room,
            at: 0,
        };
        pen.sentence();
        self.next = pen.next;
        pen.at
    }
}

/// Writes one sentence. It has the position among the draws in a field of its own, so that it stays
/// in a register.
struct Pen<'a> {
    states: &'a [u32; BATCH],
    next: usize,
    room: &'a mut [u8],
    at: usize,
}

impl Pen<'_> {
    #[inline(always)]
    fn draw(&mut self, choice: &Choice) -> u8 {
        self.draw_if(choice, true)
    }

    /// As [`Pen::draw`], but unless `taken` the next draw is this one again.
    #[inline(always)]
    fn draw_if(&mut self, choice: &Choice, taken: bool) -> u8 {
        // The remainders change nothing and prove the indexes in bounds.
        let state = self.states[self.next % BATCH];
        self.next += usize::from(taken);
        choice.entries[map::<false>(state.into(), choice.total) as usize % CHOICE_MAX]
    }

    #[inline(always)]
    fn word(&mut self, choice: &Choice) {
        self.word_if(choice, true);
    }

    /// Writes a word of `choice` if there is one, and otherwise nothing, of [`NO_CHOICE`].
    #[inline(always)]
    fn word_if(&mut self, choice: &Choice, there: bool) {
        let word = &WORDS[usize::from(self.draw_if(choice, there))];
        // All bytes of the entry are copied, and the next word overwrites those behind the text.
        self.room[self.at..self.at + WORD_BYTES].copy_from_slice(word);
        self.at += usize::from(word[WORD_BYTES - 1]);
    }

    /// Writes a sentence. Rules are numbered in the order of [`SENTENCES`].
    #[inline(always)]
    fn sentence(&mut self) {
        let rule = self.draw(&SENTENCE);
        self.noun_phrase();
        if rule >= 3 {
            self.preposition();
        }
        self.verb_phrase();
        match rule {
            0 => {}
            2 | 3 => self.noun_phrase(),
            _ => self.preposition(),
        }
        // The end of the sentence overwrites the last space.
        self.at -= 1;
        self.word(&TERMINATOR);
    }

    /// Writes a preposition, an article and a noun phrase.
    #[inline(always)]
    fn preposition(&mut self) {
        self.word(&PREPOSITION);
        self.noun_phrase();
    }

    /// Writes a noun phrase.
    #[inline(always)]
    fn noun_phrase(&mut self) {
        let rule = usize::from(self.draw(&NOUN_PHRASE)) % 4;
        self.word_if(FIRST[rule], rule >= 1);
        self.word_if(SECOND[rule], rule >= 2);
        self.word(&NOUN);
    }

    /// Writes a verb phrase. Odd rules have an auxiliary, which is so rare that the processor
    /// guesses right.
    #[inline(always)]
    fn verb_phrase(&mut self) {
        let rule = usize::from(self.draw(&VERB_PHRASE)) % 4;
        if rule % 2 == 1 {
            self.word(&AUXILIARY);
        }
        self.word(&VERB);
        self.word_if(AFTER_VERB[rule], rule >= 2);
    }
}
