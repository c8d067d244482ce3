//! Settings of topics.

use super::{api, structure};

/// The number of topics among the kinds of resources that have settings.
pub const TOPIC_RESOURCE: i8 = 2;

structure! {
    /// Something that has settings.
    DescribeConfigsResource {
        /// What it is; [`TOPIC_RESOURCE`] is known here.
        resource_type: i8;
        /// Its name.
        resource_name: String;
        /// The settings that are wanted; all if it is null.
        configuration_keys: Option<Vec<String>>;
    }
}

structure! {
    /// Asks for settings.
    DescribeConfigsRequest {
        /// Whose.
        resources: Vec<DescribeConfigsResource>;
        /// Whether to list where defaults come from, of which there is nothing to say.
        include_synonyms: bool;
        /// Whether to explain them.
        include_documentation: bool, since 3;
    }
}

structure! {
    /// Where a default comes from.
    ConfigSynonym {
        /// The name there.
        name: String;
        /// The value there.
        value: Option<String>;
        /// What it is there.
        source: i8;
    }
}

structure! {
    /// A setting.
    DescribedConfig {
        /// Its name.
        name: String;
        /// Its value.
        value: Option<String>;
        /// Whether it cannot be changed.
        read_only: bool;
        /// 1 if the topic has a value of its own, 5 for a default.
        config_source: i8;
        /// Always false.
        is_sensitive: bool;
        /// Always empty.
        synonyms: Vec<ConfigSynonym>;
        /// 2 for a text, 5 for a number, 7 for a list.
        config_type: i8, since 3;
        /// What it means.
        documentation: Option<String>, since 3;
    }
}

structure! {
    /// The settings of one thing.
    DescribeConfigsResult {
        /// 0, or why they are not known.
        error_code: i16;
        /// Why they are not known.
        error_message: Option<String>;
        /// As in the request.
        resource_type: i8;
        /// As in the request.
        resource_name: String;
        /// The settings.
        configs: Vec<DescribedConfig>;
    }
}

structure! {
    /// The settings.
    DescribeConfigsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        results: Vec<DescribeConfigsResult>;
    }
}

api!(DescribeConfigsRequest -> DescribeConfigsResponse, 32, 1..=4, flexible 4);

structure! {
    /// A change of one setting.
    AlterableConfig {
        /// Its name.
        name: String;
        /// 0 sets it, 1 goes back to the default; 2 and 3 are for lists, of which there are none.
        config_operation: i8;
        /// The new value.
        value: Option<String>;
    }
}

structure! {
    /// Something whose settings change.
    AlterConfigsResource {
        /// What it is; [`TOPIC_RESOURCE`] is known here.
        resource_type: i8;
        /// Its name.
        resource_name: String;
        /// The changes. What is not named stays.
        configs: Vec<AlterableConfig>;
    }
}

structure! {
    /// Changes settings.
    IncrementalAlterConfigsRequest {
        /// Whose.
        resources: Vec<AlterConfigsResource>;
        /// Whether to only say what would become of it.
        validate_only: bool;
    }
}

structure! {
    /// What became of one thing.
    AlterConfigsResult {
        /// 0, or why nothing was changed.
        error_code: i16;
        /// Why nothing was changed.
        error_message: Option<String>;
        /// As in the request.
        resource_type: i8;
        /// As in the request.
        resource_name: String;
    }
}

structure! {
    /// What became of it.
    IncrementalAlterConfigsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        responses: Vec<AlterConfigsResult>;
    }
}

api!(IncrementalAlterConfigsRequest -> IncrementalAlterConfigsResponse, 44, 0..=1, flexible 1);
