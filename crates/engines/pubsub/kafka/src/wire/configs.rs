//! Settings of topics.

use super::{api, structure};

/// The number of topics among the kinds of resources that have settings.
pub const TOPIC_RESOURCE: i8 = 2;

structure! {
    DescribeConfigsResource {
        /// What it is; [`TOPIC_RESOURCE`] is known here.
        resource_type: i8;
        resource_name: String;
        /// The settings that are wanted; all if it is null.
        configuration_keys: Option<Vec<String>>;
    }
}

structure! {
    DescribeConfigsRequest {
        resources: Vec<DescribeConfigsResource>;
        /// Whether to list where defaults come from, of which there is nothing to say.
        include_synonyms: bool;
        include_documentation: bool, since 3;
    }
}

structure! {
    /// Where a default comes from.
    ConfigSynonym {
        name: String;
        value: Option<String>;
        source: i8;
    }
}

structure! {
    DescribedConfig {
        name: String;
        value: Option<String>;
        /// Whether it cannot be changed.
        read_only: bool;
        /// 1 if the topic has a value of its own, 5 for a default.
        config_source: i8;
        is_sensitive: bool;
        synonyms: Vec<ConfigSynonym>;
        /// 2 for a text, 5 for a number, 7 for a list.
        config_type: i8, since 3;
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
        resource_type: i8;
        resource_name: String;
        configs: Vec<DescribedConfig>;
    }
}

structure! {
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
        name: String;
        /// 0 sets it, 1 goes back to the default; 2 and 3 are for lists, of which there are none.
        config_operation: i8;
        value: Option<String>;
    }
}

structure! {
    AlterConfigsResource {
        /// What it is; [`TOPIC_RESOURCE`] is known here.
        resource_type: i8;
        resource_name: String;
        /// The changes. What is not named stays.
        configs: Vec<AlterableConfig>;
    }
}

structure! {
    IncrementalAlterConfigsRequest {
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
        error_message: Option<String>;
        resource_type: i8;
        resource_name: String;
    }
}

structure! {
    IncrementalAlterConfigsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        responses: Vec<AlterConfigsResult>;
    }
}

api!(IncrementalAlterConfigsRequest -> IncrementalAlterConfigsResponse, 44, 0..=1, flexible 1);

structure! {
    /// The value of one setting.
    ReplacedConfig {
        name: String;
        /// Null stands for the default.
        value: Option<String>;
    }
}

structure! {
    ReplaceConfigsResource {
        /// What it is; [`TOPIC_RESOURCE`] is known here.
        resource_type: i8;
        resource_name: String;
        /// All that is set. What is not named goes back to its default.
        configs: Vec<ReplacedConfig>;
    }
}

structure! {
    /// The older way to change settings, which replaces all of them.
    AlterConfigsRequest {
        resources: Vec<ReplaceConfigsResource>;
        /// Whether to only say what would become of it.
        validate_only: bool;
    }
}

structure! {
    AlterConfigsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        responses: Vec<AlterConfigsResult>;
    }
}

api!(AlterConfigsRequest -> AlterConfigsResponse, 33, 0..=2, flexible 2);
