//! Worked examples of the papers.
