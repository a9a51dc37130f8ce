//! Executions that are made to follow a specification.
