//! Stores types of other crates in a job's JSON, by their names.

/// Stores a type that can be printed and parsed as its text.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Stores a list of tables as their names.
pub(crate) mod tables {
    use dyno_tpch::Table;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        tables: &[Table],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(tables.iter().map(|table| table.name()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Table>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let tables = names.iter().map(|name| name.parse());
        tables
            .collect::<Result<_, dyno_tpch::Error>>()
            .map_err(D::Error::custom)
    }
}

/// Stores a scale as its factor, which is checked again.
pub(crate) mod scale {
    use dyno_tpch::Scale;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        scale: &Scale,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(scale.factor())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Scale, D::Error> {
        Scale::new(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
