
/* Cards of models and GPUs, read from files. */

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/model/card.h"
#include "t/unit/sim/model/scene.h"


static char  folder[] = "/tmp/llmgw-card-XXXXXX";
static char  path[64];


static int
make_folder(void **state)
{
    if (mkdtemp(folder) == NULL) {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/config.json", folder);

    return 0;
}


static int
remove_folder(void **state)
{
    unlink(path);

    return rmdir(folder);
}


static void
write_file(const char *text)
{
    FILE  *file;

    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}


static model_card_t
read_card(const char *text, const char *name)
{
    char          error[256] = "";
    model_card_t  card;

    write_file(text);

    if (model_card_read(folder, name, &card, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }

    return card;
}


static void
refuse(const char *text, const char *what)
{
    char          error[256] = "", wanted[256];
    model_card_t  card = { .layers = 7 };

    write_file(text);
    assert_int_equal(model_card_read(folder, NULL, &card, error,
                                     sizeof(error)), -1);
    assert_int_equal(card.layers, 7);
    snprintf(wanted, sizeof(wanted), "%s%s", path, what);
    assert_non_null(strstr(error, wanted));
    assert_null(strchr(error, '\n'));
}


#define SHAPE  "\"num_hidden_layers\": 40, \"hidden_size\": 5120,"           \
               "\"num_attention_heads\": 40, \"intermediate_size\": 17408,"  \
               "\"torch_dtype\": \"bfloat16\""

static void
reads_a_model(void **state)
{
    model_card_t  card, preset;

    card = read_card("{" SHAPE ", \"num_key_value_heads\": 8,"
                     "\"head_dim\": 128, \"max_position_embeddings\": 40960,"
                     "\"vocab_size\": 151936, \"hidden_act\": \"silu\","
                     "\"rope_scaling\": null}", NULL);
    assert_int_equal(model_card_preset("Qwen/Qwen3-14B", &preset), 0);
    assert_memory_equal(&card, &preset, sizeof(card));

    card = read_card("{\"text_config\": {" SHAPE ", \"num_kv_heads\": 4,"
                     "\"num_experts\": 8, \"num_experts_per_tok\": 2,"
                     "\"moe_intermediate_size\": 512, \"n_shared_experts\":"
                     " 2, \"kv_lora_rank\": 512, \"qk_rope_head_dim\": 64}}",
                     NULL);
    assert_int_equal(card.kv_heads, 4);
    assert_int_equal(card.experts, 8);
    assert_int_equal(card.shared_intermediate, 1024);
    assert_int_equal(card.kv_latent, 576);
}


static void
knows_how_weights_are_quantized(void **state)
{
    assert_true(read_card("{" SHAPE "}", "org/m-w4a16-g").weight_bytes == 0.5);
    assert_true(read_card("{" SHAPE "}", "org/m-FP8-x").weight_bytes == 1);
    assert_true(read_card("{" SHAPE "}", "org/plain").weight_bytes == 0);
    assert_true(read_card("{" SHAPE ", \"quantization_config\":"
                          "{\"bits\": 4}}", "m-fp8").weight_bytes == 0.5);
    assert_true(read_card("{" SHAPE ", \"quantization_config\":"
                          "{\"quant_method\": \"compressed-tensors\","
                          "\"config_groups\": {\"group_1\": {\"weights\":"
                          "{\"num_bits\": 4}}, \"group_0\": {\"weights\":"
                          "{\"num_bits\": 8}}}}}", NULL).weight_bytes == 1);
}


static void
scales_positions_as_rope_says(void **state)
{
    assert_int_equal(read_card("{" SHAPE ", \"max_position_embeddings\": 1000,"
                               "\"rope_scaling\": {\"type\": \"linear\","
                               "\"factor\": 4}}", NULL).max_positions, 4000);
    assert_int_equal(read_card("{" SHAPE ", \"max_position_embeddings\": 1000,"
                               "\"rope_scaling\": {\"rope_type\": \"yarn\","
                               "\"original_max_position_embeddings\": 250,"
                               "\"factor\": 8}}", NULL).max_positions, 2000);
    assert_int_equal(read_card("{" SHAPE ", \"max_position_embeddings\": 1000,"
                               "\"rope_scaling\": {\"rope_type\": \"llama3\","
                               "\"factor\": 8}}", NULL).max_positions, 1000);
}


static void
names_file_and_line_of_a_fault(void **state)
{
    refuse("{\n\"hidden_size\": 5,,\n}", ":2: ");
    refuse("[1, 2]", ":1: not a JSON object");
    refuse("{\n \"hidden_size\": \"wide\"}", ":2: \"hidden_size\" is not");
    refuse("{\n\n \"num_hidden_layers\": -4}",
           ":3: \"num_hidden_layers\" must be");
    refuse("{\"hidden_size\": 5}", ":1: num_hidden_layers, hidden_size and");
    unlink(path);
    {
        char          error[256];
        model_card_t  card;

        assert_int_equal(model_card_read(folder, NULL, &card, error,
                                         sizeof(error)), -1);
        assert_non_null(strstr(error, "No such file"));
    }
}


static void
reads_a_gpu(void **state)
{
    char         error[256];
    model_gpu_t  gpu, preset;

    write_file("{\"H100\": {\"_comment\": \"x\", \"TFlopsPeak\": 989.5,"
               "\"TFlopsFP8\": 1979.0, \"BwPeakTBs\": 3.35, \"mfuPrefill\":"
               "0.45, \"mfuDecode\": 0.30, \"MemoryGiB\": 80.0},\n"
               "\"bad\": {\"TFlopsPeak\": 5}}");
    assert_int_equal(model_gpu_read(path, "H100", &gpu, error,
                                    sizeof(error)), 0);
    assert_int_equal(model_gpu_preset("H100", &preset), 0);
    assert_memory_equal(&gpu, &preset, sizeof(gpu));

    assert_int_equal(model_gpu_read(path, "bad", &gpu, error,
                                    sizeof(error)), -1);
    assert_non_null(strstr(error, ":2: GPU \"bad\" needs"));
    assert_int_equal(model_gpu_read(path, "H200", &gpu, error,
                                    sizeof(error)), -1);
    assert_non_null(strstr(error, "there is no GPU \"H200\""));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(reads_a_model),
        cmocka_unit_test(knows_how_weights_are_quantized),
        cmocka_unit_test(scales_positions_as_rope_says),
        cmocka_unit_test(names_file_and_line_of_a_fault),
        cmocka_unit_test(reads_a_gpu)
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
